#include "fullbore/app/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "fullbore/base/write_stream.h"

namespace fullbore {
namespace {

constexpr size_t kBlockBytes = size_t{64} << 10;

/// Standard output of this process.
struct Output {
  std::string pending;
  int failure = 0;  ///< errno of the first write that failed
  bool reported = false;
  const bool by_line = ::isatty(STDOUT_FILENO) == 1;  ///< somebody is watching

  void hand_over() {
    if (failure == 0) failure = write_stream(STDOUT_FILENO, pending);
    pending.clear();
  }
};

Output& output() {
  static Output standard;
  return standard;
}

}  // namespace

OutputError::OutputError(int reason)
    : DataError(
          fmt::format("cannot write standard output: {}", std::generic_category().message(reason))),
      pipe_closed_(reason == EPIPE) {}

void write_output(std::string_view text) {
  Output& out = output();
  if (out.failure != 0) return;
  out.pending += text;
  const bool line_ended = out.by_line && text.find('\n') != std::string_view::npos;
  if (line_ended || out.pending.size() >= kBlockBytes) out.hand_over();
}

void write_text(std::string_view text) {
  if (output().by_line)
    write_output(printable(text));
  else
    write_output(text);
}

void flush_output() {
  Output& out = output();
  const bool any = !out.pending.empty();
  out.hand_over();
  // Some file systems say only when a file is closed that it does not fit. Each copy reports that too.
  if (out.failure == 0 && any)
    if (const int copy = ::dup(STDOUT_FILENO); copy >= 0 && ::close(copy) != 0 && errno != EINTR)
      out.failure = errno;
  if (out.failure != 0 && !std::exchange(out.reported, true)) throw OutputError(out.failure);
}

void write_message(std::string_view text) { (void)write_stream(STDERR_FILENO, printable(text)); }

void prepare_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      // open() gives the lowest free number, and the wrong direction makes every use fail with EBADF.
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void end_by_closed_pipe() {
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigprocmask(SIG_UNBLOCK, &pipe, nullptr);
  raise(SIGPIPE);
  ::_exit(128 + SIGPIPE);
}

}  // namespace fullbore
