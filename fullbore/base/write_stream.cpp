#include "fullbore/base/write_stream.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace fullbore {
namespace {

/// Keeps SIGPIPE from this thread while it lives. That of a write is for the thread that wrote: it is taken away before
/// the old mask comes back. One that was waiting before stays.
class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t waiting;
    sigpending(&waiting);
    was_waiting_ = sigismember(&waiting, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~WithoutBrokenPipe() {
    const timespec now{};
    if (!was_waiting_)
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  WithoutBrokenPipe& operator=(const WithoutBrokenPipe&) = delete;

 private:
  sigset_t pipe_;
  sigset_t old_;
  bool was_waiting_;
};

}  // namespace

int write_stream(int descriptor, std::string_view text) {
  const WithoutBrokenPipe quiet;
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (written == 0) return ENOSPC;  // or this would never end
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return errno;
    pollfd ready{descriptor, POLLOUT, 0};
    ::poll(&ready, 1, -1);
  }
  return 0;
}

}  // namespace fullbore
