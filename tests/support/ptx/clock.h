#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace fullbore::ptx {

/// What a thread knows of the others of its cluster: of each, how many of its steps come before all that the thread does from
/// now on. A step of a thread ends where it tells others something: at a barrier, or where it arrives at an mbarrier. Threads
/// are told by their numbers in the grid; some numbers are of no thread (Block).
class Clock {
 public:
  Clock() = default;
  Clock(uint64_t first_thread, size_t threads) : first_(first_thread), steps_(threads) {}

  bool is_kept() const { return !steps_.empty(); }
  uint32_t& of(uint64_t thread) { return steps_[thread - first_]; }
  /// Does that step of the thread come before? Threads of other clusters are never known.
  bool knows(uint64_t thread, uint32_t step) const {
    return thread >= first_ && thread - first_ < steps_.size() && steps_[thread - first_] > step;
  }
  void join(const Clock& other) {
    if (steps_.empty()) *this = other;
    for (size_t i = 0; i < other.steps_.size(); ++i)
      steps_[i] = std::max(steps_[i], other.steps_[i]);
  }

 private:
  uint64_t first_ = 0;
  std::vector<uint32_t> steps_;
};

}  // namespace fullbore::ptx
