#include "fullbore/base/start_thread.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <memory>
#include <system_error>
#include <utility>

#include "fullbore/base/error.h"

namespace fullbore {

std::thread start_thread(const char* purpose, std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    throw DataError(
        fmt::format("cannot start a thread for {}: {}; fewer engine.threads and data.workers, or a "
                    "higher limit "
                    "of processes (ulimit -u, pids.max of the control group), are needed",
                    purpose, error.code().message()));
  }
}

std::thread start_quiet_thread(const char* purpose, std::function<void()> work) {
  sigset_t all;
  sigset_t old;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);  // a new thread has the mask of its maker
  const std::shared_ptr<void> restore(
      nullptr, [&](void*) { ::pthread_sigmask(SIG_SETMASK, &old, nullptr); });
  return start_thread(purpose, std::move(work));
}

std::vector<std::jthread> start_helpers(size_t count, const std::function<void()>& work) {
  std::vector<std::jthread> helpers;
  helpers.reserve(count);
  try {
    while (helpers.size() < count) helpers.emplace_back(work);
  } catch (const std::system_error&) {
    // Those that there are, and the caller, do the work: later, and to the same result.
    return helpers;
  }
  return helpers;
}

}  // namespace fullbore
