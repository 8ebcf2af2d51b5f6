#include "fullbore/device/cpu/executor/worker_choice.h"

#include <algorithm>
#include <atomic>

namespace fullbore::cpu {
namespace {

// A window: long enough that slices of the scheduler, 3 to 4 ms, are in it as they are in the long run.
constexpr int64_t kWindow = 50'000'000;
constexpr int kWindowRuns = 3;
constexpr int64_t kLongWindow = 100'000'000;  // then one run is enough
// A worker that others leave alone waits for less than a hundredth of the time.
constexpr double kDelayedShare = 0.1;
// The other way has to be faster by so much.
constexpr double kGain = 0.95;
// A way is kept for so long before the other one is tried again: a try that loses costs some per cent of that.
constexpr int64_t kFirstPause = 250'000'000;
constexpr int64_t kLongestAlone = 4'000'000'000;
constexpr int64_t kLongestTogether = 60'000'000'000;

std::atomic<int> always_alone{0};

}  // namespace

bool WorkerChoice::alone() const {
  return state_ == State::try_alone || state_ == State::alone ||
         always_alone.load(std::memory_order_relaxed) > 0;
}

bool WorkerChoice::ran(int64_t begin_ns, int64_t end_ns) {
  if (runs_++ == 0) begin_ns_ = begin_ns;
  busy_ns_ += end_ns - begin_ns;
  now_ns_ = end_ns;
  return busy_ns_ >= kWindow && (runs_ >= kWindowRuns || busy_ns_ >= kLongWindow);
}

void WorkerChoice::decide(int64_t delayed_ns) {
  const double share = static_cast<double>(delayed_ns) /
                       static_cast<double>(std::max<int64_t>(now_ns_ - begin_ns_, 1));
  const double nanoseconds = static_cast<double>(busy_ns_) / runs_;
  runs_ = 0;
  busy_ns_ = 0;
  const bool due = now_ns_ >= kept_until_ns_;
  const bool faster = nanoseconds < kGain * nanoseconds_;
  switch (state_) {
    case State::together:
      nanoseconds_ = nanoseconds;
      if (due && share > kDelayedShare) state_ = State::try_alone;
      return;
    case State::alone:
      nanoseconds_ = nanoseconds;
      if (due) state_ = State::try_together;
      return;
    case State::try_alone:
      if (faster)
        enter(State::alone, kFirstPause);
      else
        enter(State::together, std::clamp(2 * pause_ns_, kFirstPause, kLongestTogether));
      break;
    case State::try_together:
      if (faster)
        enter(State::together, kFirstPause);
      else
        enter(State::alone, std::clamp(2 * pause_ns_, kFirstPause, kLongestAlone));
      break;
  }
  if (faster) nanoseconds_ = nanoseconds;
}

void WorkerChoice::enter(State state, int64_t pause_ns) {
  state_ = state;
  pause_ns_ = pause_ns;
  kept_until_ns_ = now_ns_ + pause_ns;
}

AlwaysAlone::AlwaysAlone() { ++always_alone; }
AlwaysAlone::~AlwaysAlone() { --always_alone; }

}  // namespace fullbore::cpu
