#include "workloads/chess/piped_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore::chess {
namespace {

using Clock = std::chrono::steady_clock;

/// How often those who wait look whether they are to stop.
constexpr int kSliceMilliseconds = 20;

struct Pipe {
  std::array<int, 2> ends = {-1, -1};
  Pipe() { opened = ::pipe2(ends.data(), O_CLOEXEC) == 0; }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  int take(size_t which) { return std::exchange(ends[which], -1); }
  bool opened = false;
};

/// In the new process: calls that are safe behind fork() in a program of several threads, and no others.
[[noreturn]] void become(const char* path, char* const* arguments, int input, int output, int null,
                         pid_t parent) {
  constexpr int kFailed = 127;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kFailed);  // it ended before that took effect
  // Descriptors may be 0, 1 or 2 themselves: first out of the way.
  const int far_input = ::fcntl(input, F_DUPFD, 10);
  const int far_output = ::fcntl(output, F_DUPFD, 10);
  const int far_null = ::fcntl(null, F_DUPFD, 10);
  if (::dup2(far_input, 0) < 0 || ::dup2(far_output, 1) < 0 || ::dup2(far_null, 2) < 0)
    ::_exit(kFailed);
  if (::close_range(3, ~0U, 0) != 0)
    for (int file = 3; file < 65536; ++file) ::close(file);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  char* const environment[] = {nullptr};
  if (::chdir("/") == 0) ::execve(path, arguments, environment);
  ::_exit(kFailed);
}

}  // namespace

Result<PipedProgram> PipedProgram::start(const std::string& path,
                                         const std::vector<std::string>& arguments) {
  FileStatus status;
  if (system_files().status(path, status) != 0)
    return Failure{fmt::format("{}: {}", path, system_reason())};
  if (!status.is_file || ::access(path.c_str(), X_OK) != 0)
    return Failure{fmt::format("{} is no program that may be run", path)};
  Pipe input, output;
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t self = ::getpid();
  const pid_t process = input.opened && output.opened && null >= 0 ? ::fork() : -1;
  if (process == 0)
    become(path.c_str(), pointers.data(), input.ends[0], output.ends[1], null, self);
  const std::string reason = system_reason();
  if (null >= 0) ::close(null);
  if (process < 0) return Failure{fmt::format("{} cannot be started: {}", path, reason)};
  for (const int end : {input.ends[1], output.ends[0]}) ::fcntl(end, F_SETFL, O_NONBLOCK);
  return PipedProgram(process, input.take(1), output.take(0));
}

PipedProgram::PipedProgram(PipedProgram&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_) {}

PipedProgram& PipedProgram::operator=(PipedProgram&& other) noexcept {
  if (this == &other) return *this;
  end(std::chrono::milliseconds(0));
  process_ = std::exchange(other.process_, -1);
  input_ = std::exchange(other.input_, -1);
  output_ = std::exchange(other.output_, -1);
  buffer_ = std::move(other.buffer_);
  begin_ = other.begin_;
  return *this;
}

PipedProgram::~PipedProgram() { end(std::chrono::milliseconds(0)); }

void PipedProgram::close_pipes() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
  if (output_ >= 0) ::close(std::exchange(output_, -1));
}

void PipedProgram::end(std::chrono::milliseconds patience) {
  close_pipes();
  if (process_ <= 0) return;
  const Clock::time_point deadline = Clock::now() + patience;
  int status = 0;
  while (Clock::now() < deadline) {
    const pid_t ended = ::waitpid(process_, &status, WNOHANG);
    if (ended != 0 && !(ended < 0 && errno == EINTR)) {
      process_ = -1;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

bool PipedProgram::write(std::string_view text, Clock::time_point deadline) {
  // A closed pipe raises SIGPIPE in this thread, unless it is blocked here and taken back.
  sigset_t pipe_signal, before, pending;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ::sigpending(&pending);
  const bool was_pending = ::sigismember(&pending, SIGPIPE) == 1;
  bool closed = false;
  while (!text.empty() && !closed && Clock::now() < deadline) {
    const ssize_t written = ::write(input_, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready = {input_, POLLOUT, 0};
      ::poll(&ready, 1, kSliceMilliseconds);
    } else if (errno != EINTR) {
      closed = true;
    }
  }
  if (closed && !was_pending) {
    const timespec at_once = {0, 0};
    ::sigtimedwait(&pipe_signal, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return text.empty();
}

LineWait PipedProgram::take_line(std::string_view& line) {
  for (size_t searched = begin_;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != buffer_.npos) {
      line = std::string_view(buffer_).substr(begin_, end - begin_);
      if (line.ends_with('\r')) line.remove_suffix(1);
      begin_ = end + 1;
      return LineWait::line;
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    searched = buffer_.size();
    if (searched > kMostLine) return LineWait::flooded;
    std::array<char, 4096> piece;
    const ssize_t read = ::read(output_, piece.data(), piece.size());
    if (read > 0)
      buffer_.append(piece.data(), static_cast<size_t>(read));
    else if (read < 0 && errno == EAGAIN)
      return LineWait::late;
    else if (read == 0 || errno != EINTR)
      return LineWait::ended;
  }
}

void PipedProgram::wait_for_output(Clock::time_point deadline) const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  pollfd ready = {output_, POLLIN, 0};
  ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kSliceMilliseconds)));
}

}  // namespace fullbore::chess
