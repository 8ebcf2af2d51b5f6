#include "fullbore/ckpt/background_task.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <utility>
#include <vector>

#include "fullbore/base/start_thread.h"

namespace fullbore {
namespace {

constexpr int kNiceness = 19;

/// Signals are for the threads that were there before.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t old_;
};

}  // namespace

BackgroundTask::~BackgroundTask() {
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::start(std::function<Status()> work) {
  FB_CHECK(!pending(), "two tasks at once");
  outcome_ = success();
  thrown_ = nullptr;
  running_ = true;
  const auto run = [this, work = std::move(work)] {
    try {
      outcome_ = work();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    running_ = false;
  };
  const SignalsBlocked blocked;  // a thread inherits the mask
  std::vector<std::jthread> started = start_helpers(1, [run] {
    // On Linux priorities are a thread's. Where it is refused the work is done all the same.
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
    run();
  });
  if (started.empty())
    run();  // the system has no thread for it
  else
    thread_ = std::move(started.front());
  pending_ = true;
}

Status BackgroundTask::wait() {
  if (!pending()) return success();
  if (thread_.joinable()) thread_.join();
  pending_ = false;
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return std::exchange(outcome_, success());
}

}  // namespace fullbore
