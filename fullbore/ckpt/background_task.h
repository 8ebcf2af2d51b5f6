#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <thread>

#include "fullbore/base/result.h"

namespace fullbore {

/// Work that goes on beside the training loop, one piece at a time, on a thread that the scheduler
/// prefers all others to: it lives on what the step's threads leave.
class BackgroundTask {
 public:
  BackgroundTask() = default;
  ~BackgroundTask();  ///< waits; what came of the work is lost
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  /// Nothing may be under way. Where the system refuses a thread the work is done before start() returns.
  void start(std::function<Status()> work);
  /// Started, and not yet waited for.
  bool pending() const { return pending_; }
  bool running() const { return running_; }
  /// Waits for the work under way, if any, and tells how it ended; rethrows what it threw.
  Status wait();

 private:
  std::jthread thread_;
  bool pending_ = false;
  std::atomic<bool> running_{false};
  Status outcome_ = success();
  std::exception_ptr thrown_;
};

}  // namespace fullbore
