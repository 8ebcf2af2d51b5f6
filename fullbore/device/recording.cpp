#include "fullbore/device/recording.h"

#include <utility>

#include "fullbore/base/check.h"

namespace fullbore {

std::array<RowRange, 2> rows_not_made(const LoopRange& range, int64_t most, int64_t executed) {
  if (range.reverse) return {{{0, most - executed}, {most, range.iterations}}};
  return {{{0, 0}, {executed, range.iterations}}};
}

std::vector<RecordedLaunch>& Recording::current() {
  return open_.empty() ? launches_ : open_.back()->body;
}

void Recording::launch(int id, const Kernel& kernel, std::span<const LaunchOperand> operands,
                       bool waits) {
  current().push_back({.kind = RecordedLaunch::Kind::kernel,
                       .id = id,
                       .kernel = &kernel,
                       .operands = {operands.begin(), operands.end()},
                       .waits = waits});
}

void Recording::copy(int id, const LaunchOperand& from, const LaunchOperand& to, int64_t bytes,
                     bool waits) {
  current().push_back({.kind = RecordedLaunch::Kind::copy,
                       .id = id,
                       .operands = {from, to},
                       .bytes = bytes,
                       .waits = waits});
}

void Recording::carry(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) {
  FB_CHECK(!open_.empty(), "a carried value outside of any loop");
  open_.back()->carries.push_back({from, to, bytes});
}

void Recording::exchange(const LaunchOperand& from, const LaunchOperand& to, int64_t bytes) {
  FB_CHECK(!open_.empty(), "an exchange outside of any loop");
  open_.back()->exchanges.push_back({from, to, bytes});
}

void Recording::clear_rows(const LaunchOperand& rows, int64_t row_bytes) {
  FB_CHECK(!open_.empty(), "rows that are stacked outside of any loop");
  open_.back()->cleared.push_back({rows, row_bytes});
}

void Recording::begin_loop(int id, const LoopRange& range) {
  auto loop = std::make_shared<RecordedLoop>();
  loop->range = range;
  current().push_back({.kind = RecordedLaunch::Kind::loop, .id = id, .loop = loop});
  open_.push_back(std::move(loop));
}

void Recording::end_loop() {
  FB_CHECK(!open_.empty(), "the end of a loop that did not begin");
  open_.pop_back();
}

std::vector<RecordedLaunch> Recording::take() {
  FB_CHECK(open_.empty(), "{} loops have not ended", open_.size());
  return std::move(launches_);
}

}  // namespace fullbore
