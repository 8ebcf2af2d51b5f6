#include "fullbore/ckpt/background_task.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <utility>

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
  const SignalsBlocked blocked;  // a thread inherits the mask
  thread_ = std::thread([this, work = std::move(work)] {
    // On Linux priorities are a thread's. Where it is refused the work is done all the same.
    (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
    try {
      outcome_ = work();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    running_ = false;
  });
}

Status BackgroundTask::wait() {
  if (!pending()) return success();
  thread_.join();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return std::exchange(outcome_, success());
}

}  // namespace fullbore
