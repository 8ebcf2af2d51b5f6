#include "fullbore/device/cuda/executor/program_walk.h"

#include <algorithm>

namespace fullbore::cuda {

Address ProgramWalk::place(const LaunchOperand& operand) const {
  Address base = operand.base;
  if (operand.batch_input >= 0) {
    base = parts_.batch[static_cast<size_t>(operand.batch_input)];
  } else if (!operand.exchanged_by.empty()) {
    size_t which = 0;
    for (size_t i = 0; i < operand.exchanged_by.size(); ++i)
      which |= static_cast<size_t>(made_[operand.exchanged_by[i]] % 2) << i;
    base = operand.exchanged_bases[which];
  }
  int64_t moved = 0;
  for (size_t i = 0; i < operand.strides.size(); ++i) moved += operand.strides[i] * indices_[i];
  return base + moved;
}

void ProgramWalk::launches(std::span<const RecordedLaunch> launches) {
  for (const RecordedLaunch& each : launches) {
    if (each.waits) sink_.barrier();
    sink_.begin_launch(each.id);
    launch(each);
    sink_.end_launch();
  }
}

void ProgramWalk::launch(const RecordedLaunch& launch) {
  switch (launch.kind) {
    case RecordedLaunch::Kind::kernel:
      operands_.clear();
      for (const LaunchOperand& operand : launch.operands) operands_.push_back(place(operand));
      return sink_.kernel(parts_.kernels.at(launch.kernel), operands_);
    case RecordedLaunch::Kind::copy:
      return sink_.copy(place(launch.operands[0]), place(launch.operands[1]), launch.bytes);
    case RecordedLaunch::Kind::loop: return loop(launch.id, *launch.loop);
  }
}

void ProgramWalk::loop(int id, const RecordedLoop& loop) {
  const LoopRange& range = loop.range;
  int64_t iterations = range.iterations;
  if (range.count)
    iterations =
        std::clamp<int64_t>(sink_.number(place(*range.count), sizeof(int64_t)), 0, iterations);
  int64_t executed = 0;
  indices_.push_back(0);
  made_.push_back(0);
  while (executed < iterations) {
    indices_.back() = range.reverse ? iterations - 1 - executed : executed;
    sink_.barrier();
    if (range.index) sink_.set_number(place(*range.index), indices_.back());
    sink_.barrier();
    launches(loop.body);
    ++executed;
    sink_.barrier();
    for (const RecordedCarry& carry : loop.carries)
      sink_.copy(place(carry.from), place(carry.to), carry.bytes);
    const bool stops = range.stop && sink_.number(place(*range.stop), 1) != 0;
    ++made_.back();
    if (stops) break;
  }
  indices_.pop_back();
  made_.pop_back();
  iterations_made_[id] += executed;
  sink_.barrier();
  finish_loop(loop, iterations, executed);
  if (range.executed) sink_.set_number(place(*range.executed), executed);
}

// Exchanged values, rows and the count lie apart: side by side.
void ProgramWalk::finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed) {
  if (executed % 2 != 0)
    for (const RecordedCarry& exchange : loop.exchanges)
      sink_.copy(place(exchange.from), place(exchange.to), exchange.bytes);
  for (const RecordedRows& rows : loop.cleared)
    for (const RowRange& range : rows_not_made(loop.range, most, executed))
      if (range.begin < range.end)
        sink_.clear(place(rows.rows) + range.begin * rows.row_bytes,
                    (range.end - range.begin) * rows.row_bytes);
}

}  // namespace fullbore::cuda
