#include "fullbore/device/cuda/executor/program_walk.h"

#include <algorithm>
#include <utility>

#include "fullbore/device/cuda/executor/launchable_graph.h"

namespace fullbore::cuda {

Place ProgramWalk::place(const LaunchOperand& operand) const {
  Place found{.address = operand.base};
  if (operand.batch_input >= 0) {
    found.address = parts_.batch[static_cast<size_t>(operand.batch_input)];
  } else if (!operand.exchanged_by.empty()) {
    size_t which = 0, varying = 0;
    for (size_t i = 0; i < operand.exchanged_by.size(); ++i) {
      const size_t loop = operand.exchanged_by[i];
      which |= static_cast<size_t>(made_[loop] % 2) << i;
      varying |= static_cast<size_t>(loop < around_.size()) << i;
    }
    found.address = operand.exchanged_bases[which];
    for (size_t other = 0; varying != 0 && other < operand.exchanged_bases.size(); ++other)
      if (other != which && ((other ^ which) & ~varying) == 0)
        found.others.push_back(operand.exchanged_bases[other]);
  }
  int64_t moved = 0;
  for (size_t i = 0; i < operand.strides.size(); ++i) {
    moved += operand.strides[i] * indices_[i];
    if (i >= around_.size()) continue;
    const int64_t furthest =
        operand.strides[i] * std::max<int64_t>(0, around_[i]->range.iterations - 1);
    (furthest < 0 ? found.least : found.most) += furthest;
  }
  found.address = found.address + moved;
  for (Address& other : found.others) other = other + moved;
  return found;
}

std::optional<Place> ProgramWalk::place(const std::optional<LaunchOperand>& operand) const {
  if (!operand) return std::nullopt;
  return place(*operand);
}

// Pieces that a graph has are told to it, and then it is launched.
void ProgramWalk::run(const ProgramPiece& piece, const RecordedLoop* loop,
                      std::span<const RecordedLaunch> launches) {
  if (piece.waits) sink_->wait_for_copies_behind();
  if (!piece.graph) return make(piece, loop, launches);
  if (piece.moves) {
    LaunchSink* const sink = std::exchange(sink_, &piece.graph->begin());
    make(piece, loop, launches);
    sink_ = sink;
  } else {
    for (const auto& [id, iterations] : piece.iterations) iterations_made_[id] += iterations;
  }
  sink_->graph(*piece.graph, piece.first, piece.last);
}

void ProgramWalk::make(const ProgramPiece& piece, const RecordedLoop* loop,
                       std::span<const RecordedLaunch> launches) {
  sink_->barrier();
  if (piece.sets_index && loop->range.index)
    sink_->set_number(place(*loop->range.index), indices_.back());
  sink_->barrier();
  this->launches(launches.subspan(piece.begin, piece.end - piece.begin));
  sink_->barrier();
  if (!piece.carries) return;
  for (const RecordedCarry& carry : loop->carries)
    sink_->copy(place(carry.from), place(carry.to), carry.bytes);
}

void ProgramWalk::iteration(const RecordedLoop* loop, std::span<const RecordedLaunch> launches) {
  if (pieces_ != nullptr)
    if (const auto found = pieces_->find(loop); found != pieces_->end()) {
      for (const ProgramPiece& piece : found->second) run(piece, loop, launches);
      return;
    }
  const bool is_body = loop != nullptr;
  make({.end = launches.size(), .sets_index = is_body, .carries = is_body}, loop, launches);
}

void ProgramWalk::piece(const ProgramPiece& piece, std::span<const RecordedLoop* const> around,
                        std::span<const RecordedLaunch> launches) {
  around_ = around;
  indices_.assign(around.size(), 0);
  made_.assign(around.size(), 0);
  make(piece, around.empty() ? nullptr : around.back(), launches);
}

void ProgramWalk::launches(std::span<const RecordedLaunch> launches) {
  for (const RecordedLaunch& each : launches) {
    if (each.waits) sink_->barrier();
    sink_->begin_launch(each.id);
    launch(each);
    sink_->end_launch();
  }
}

void ProgramWalk::launch(const RecordedLaunch& launch) {
  switch (launch.kind) {
    case RecordedLaunch::Kind::kernel:
      operands_.clear();
      for (const LaunchOperand& operand : launch.operands) operands_.push_back(place(operand));
      return sink_->kernel(parts_.kernels.at(launch.kernel), operands_);
    case RecordedLaunch::Kind::copy:
      return sink_->copy(place(launch.operands[0]), place(launch.operands[1]), launch.bytes);
    case RecordedLaunch::Kind::loop: return loop(launch.id, *launch.loop);
  }
}

void ProgramWalk::loop(int id, const RecordedLoop& loop) {
  const LoopRange& range = loop.range;
  if (depends_on_data(range) && parts_.conditional != nullptr && !sink_->reads_numbers())
    return conditional_loop(id, loop);
  int64_t iterations = range.iterations;
  if (range.count)
    iterations =
        std::clamp<int64_t>(sink_->number(place(*range.count), sizeof(int64_t)), 0, iterations);
  const std::optional<CountOnCard> counts_around = counts_;
  if (counts_) counts_->each *= iterations;
  int64_t executed = 0;
  indices_.push_back(0);
  made_.push_back(0);
  while (executed < iterations) {
    indices_.back() = range.reverse ? iterations - 1 - executed : executed;
    iteration(&loop, loop.body);
    ++executed;
    const bool stops = range.stop && sink_->number(place(*range.stop), 1) != 0;
    ++made_.back();
    if (stops) break;
  }
  indices_.pop_back();
  made_.pop_back();
  if (counts_)
    counts_on_card_[id] = *counts_;
  else
    iterations_made_[id] += executed;
  counts_ = counts_around;
  sink_->barrier();
  finish_loop(loop, iterations, executed);
  if (range.executed) sink_->set_number(place(*range.executed), executed);
}

// Exchanged values, rows and the count lie apart: side by side.
void ProgramWalk::finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed) {
  if (executed % 2 != 0)
    for (const RecordedCarry& exchange : loop.exchanges)
      sink_->copy(place(exchange.from), place(exchange.to), exchange.bytes);
  for (const RecordedRows& rows : loop.cleared)
    for (const RowRange& range : rows_not_made(loop.range, most, executed))
      if (range.begin < range.end)
        sink_->clear(behind(place(rows.rows), range.begin * rows.row_bytes),
                     (range.end - range.begin) * rows.row_bytes);
}

// As many iterations as there may be, in the order in which they are made. Exchanged values are where they would be if all were.
void ProgramWalk::conditional_loop(int id, const RecordedLoop& loop) {
  const ConditionalLoops& conditional = *parts_.conditional;
  const LoopRange& range = loop.range;
  const auto settle = [&] {
    for (const RecordedCarry& exchange : loop.exchanges)
      sink_->control(
          conditional.settle(loop, place(exchange.from), place(exchange.to), exchange.bytes));
  };
  sink_->control(conditional.begin(loop, place(range.count)));
  if (ConditionalLoops::is_crossed(range)) settle();
  const std::optional<CountOnCard> counts_around = counts_;
  counts_ = CountOnCard{.loop = conditional.number_of(loop)};
  counts_on_card_[id] = *counts_;
  indices_.push_back(0);
  made_.push_back(0);
  const int64_t chunk = chunk_of(range.iterations);
  for (int64_t begin = 0; begin < range.iterations; begin += chunk) {
    const int64_t end = std::min(begin + chunk, range.iterations);
    const bool is_all = end - begin == range.iterations;
    const int64_t first = range.reverse ? range.iterations - end : begin;
    if (!is_all) sink_->begin_conditional(conditional.decide(loop, first));
    conditional_iterations(loop, begin, end);
    if (!is_all) sink_->end_conditional();
  }
  indices_.pop_back();
  made_.pop_back();
  counts_ = counts_around;
  settle();
  for (const RecordedRows& rows : loop.cleared)
    sink_->control(conditional.clear(loop, place(rows.rows), rows.row_bytes));
  sink_->control(conditional.finish(loop, place(range.executed)));
}

void ProgramWalk::conditional_iterations(const RecordedLoop& loop, int64_t begin, int64_t end) {
  const ConditionalLoops& conditional = *parts_.conditional;
  const LoopRange& range = loop.range;
  for (int64_t made = begin; made < end; ++made) {
    made_.back() = made;
    indices_.back() = range.reverse ? range.iterations - 1 - made : made;
    sink_->begin_conditional(conditional.decide(loop, indices_.back()));
    iteration(&loop, loop.body);
    sink_->control(conditional.end_iteration(loop, place(range.stop)));
    sink_->end_conditional();
  }
}

}  // namespace fullbore::cuda
