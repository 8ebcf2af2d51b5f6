#pragma once
#include <cstdint>

namespace fullbore::cpu {

/// Whether a program is run by all workers or by the first alone. Workers wait for each other a thousand times a second;
/// where another process has one's processor, all wait for its return, and one worker may be faster than two. That is
/// measured: when workers had to wait for processors, a few runs are made alone; the faster way is kept, and the other is
/// tried again after pauses that grow. On a processor of its own a program is never run alone.
/// Both ways give the same bits.
class WorkerChoice {
 public:
  bool alone() const;

  /// The next run is the first of a window.
  bool window_begins() const { return runs_ == 0; }
  /// A run ended. True: the window is over, and decide() is called.
  bool ran(int64_t begin_ns, int64_t end_ns);
  /// `delayed_ns`: in which the workers could not run since the window's begin, all of them together.
  void decide(int64_t delayed_ns);

 private:
  enum class State : uint8_t { together, try_alone, alone, try_together };
  void enter(State state, int64_t pause_ns);

  State state_ = State::together;
  // Of the window.
  int runs_ = 0;
  int64_t begin_ns_ = 0;
  int64_t busy_ns_ = 0;
  int64_t now_ns_ = 0;
  // Of the way that is kept.
  double nanoseconds_ = 0;  ///< a run
  int64_t kept_until_ns_ = 0;
  int64_t pause_ns_ = 0;
};

/// For tests: as long as there is one, the process runs every program alone.
class AlwaysAlone {
 public:
  AlwaysAlone();
  ~AlwaysAlone();
  AlwaysAlone(const AlwaysAlone&) = delete;
  AlwaysAlone& operator=(const AlwaysAlone&) = delete;
};

}  // namespace fullbore::cpu
