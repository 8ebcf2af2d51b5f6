#include "fullbore/device/sequential_replay.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

SequentialReplay::SequentialReplay(std::vector<RecordedLaunch> launches)
    : launches_(std::move(launches)) {}

void SequentialReplay::bind_batch(std::span<const void* const> host) {
  batch_.assign(host.begin(), host.end());
}

void SequentialReplay::run() {
  events_.clear();
  iterations_made_.clear();
  walk(launches_);
}

int64_t SequentialReplay::iterations_made(int loop) const {
  const auto made = iterations_made_.find(loop);
  return made == iterations_made_.end() ? 0 : made->second;
}

void SequentialReplay::set_profiling(bool on) { is_profiling_ = on; }

std::vector<LaneEvents> SequentialReplay::events() const {
  if (!is_profiling_) return {};
  return {{.lane = 0, .events = events_, .dropped = 0}};
}

SequentialReplay::Place SequentialReplay::place(const LaunchOperand& operand) const {
  int64_t moved = 0;
  for (size_t i = 0; i < operand.strides.size(); ++i) moved += operand.strides[i] * indices_[i];
  if (operand.batch_input < 0) {
    size_t which = 0;
    for (size_t i = 0; i < operand.exchanged_by.size(); ++i)
      which |= static_cast<size_t>(made_[operand.exchanged_by[i]] % 2) << i;
    const Address base =
        operand.exchanged_by.empty() ? operand.base : operand.exchanged_bases[which];
    return {base + moved, nullptr};
  }
  return {{}, static_cast<const char*>(batch_[static_cast<size_t>(operand.batch_input)]) + moved};
}

void SequentialReplay::walk(const std::vector<RecordedLaunch>& launches) {
  for (const RecordedLaunch& launch : launches) {
    if (!is_profiling_) {
      run_once(launch);
      continue;
    }
    const size_t event = events_.size();
    events_.push_back({.launch = launch.id, .begin_ns = now_ns()});
    run_once(launch);
    events_[event].end_ns = now_ns();
  }
}

void SequentialReplay::run_once(const RecordedLaunch& launch) {
  switch (launch.kind) {
    case RecordedLaunch::Kind::kernel: {
      std::vector<Place> places;
      for (const LaunchOperand& operand : launch.operands) places.push_back(place(operand));
      this->launch(*launch.kernel, places);
      return;
    }
    case RecordedLaunch::Kind::copy:
      return copy(place(launch.operands[0]), place(launch.operands[1]), launch.bytes);
    case RecordedLaunch::Kind::loop: return run_loop(launch.id, *launch.loop);
  }
}

void SequentialReplay::finish_loop(const RecordedLoop& loop, int64_t most, int64_t executed) {
  if (executed % 2 != 0)
    for (const RecordedCarry& exchange : loop.exchanges)
      copy(place(exchange.from), place(exchange.to), exchange.bytes);
  for (const RecordedRows& rows : loop.cleared)
    for (const RowRange& range : rows_not_made(loop.range, most, executed)) {
      if (range.begin >= range.end) continue;
      Place first = place(rows.rows);
      first.address = first.address + range.begin * rows.row_bytes;
      clear(first, (range.end - range.begin) * rows.row_bytes);
    }
}

// Thread groups of a parallel loop have memory of their own so that they may run side by side: one after another needs
// the first group's alone.
void SequentialReplay::run_loop(int id, const RecordedLoop& loop) {
  const LoopRange& range = loop.range;
  int64_t iterations = range.iterations;
  if (range.count)
    iterations = std::clamp<int64_t>(number(place(*range.count), sizeof(int64_t), iterations), 0,
                                     iterations);
  int64_t executed = 0;
  indices_.push_back(0);
  made_.push_back(0);
  while (executed < iterations) {
    indices_.back() = range.reverse ? iterations - 1 - executed : executed;
    if (range.index) set_number(place(*range.index), indices_.back());
    walk(loop.body);
    ++executed;
    for (const RecordedCarry& carry : loop.carries)
      copy(place(carry.from), place(carry.to), carry.bytes);
    const bool stops = range.stop && number(place(*range.stop), 1, 0) != 0;
    ++made_.back();
    if (stops) break;
  }
  indices_.pop_back();
  made_.pop_back();
  iterations_made_[id] += executed;
  finish_loop(loop, iterations, executed);
  if (range.executed) set_number(place(*range.executed), executed);
}

}  // namespace fullbore
