#include "fullbore/lab/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/own_executable.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/private_folder.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

/// How often who waits looks whether to go on: too seldom to be seen in anybody's times.
constexpr std::chrono::milliseconds kSlice{10};
constexpr int kNotStarted = 127;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Descriptor open_output(const std::string& path) {
  const char* name = path.empty() ? "/dev/null" : path.c_str();
  Descriptor file(::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.ok()) throw DataError(cannot_write(path).message);
  return file;
}

struct ChildFiles {
  int input;
  int output;
  int errors;
  int kept;  ///< stays open under its number; -1: none
};

/// In the new process: calls that are safe behind fork() in a program of several threads, and no others.
[[noreturn]] void become(const char* executable, char* const* words, char* const* environment,
                         const ChildFiles& files, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotStarted);  // it ended before that took effect
  ::setpgid(0, 0);
  // All but the kept one are opened to be closed by exec(), and none of them is 0, 1 or 2: those are open here.
  if (::dup2(files.input, 0) < 0 || ::dup2(files.output, 1) < 0 || ::dup2(files.errors, 2) < 0)
    ::_exit(kNotStarted);
  if (files.kept >= 0) ::fcntl(files.kept, F_SETFD, 0);
  for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(executable, words, environment);
  ::_exit(kNotStarted);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** each = environ; *each; ++each) {
    const std::string_view text = *each;
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : added) replaced |= key == name;
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [key, value] : added) all.push_back(fmt::format("{}={}", key, value));
  return all;
}

std::string last_line(const std::string& path) {
  if (path.empty()) return "";
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  const Result<std::string> text = read_file(path, system_files(), kMostBytes);
  if (!text.ok()) return "";
  std::string_view rest = text.value();
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  const size_t end = rest.rfind('\n');
  return printable_name(end == rest.npos ? rest : rest.substr(end + 1));
}

}  // namespace

std::string ChildEnd::reason() const {
  if (stopped) return "stopped";
  if (timed_out) return fmt::format("not done within {:.0f} s", seconds);
  if (ok()) return "";
  const std::string what = signal == SIGKILL ? "killed (signal 9), as where memory runs out"
                           : signal != 0
                               ? fmt::format("ended by signal {} ({})", signal, strsignal(signal))
                               : fmt::format("exit code {}", exit_code);
  return said.empty() ? what : fmt::format("{}: {}", what, said);
}

ChildProcess::ChildProcess(const ChildCommand& command)
    : errors_(command.errors), begin_(Clock::now()) {
  std::vector<std::string> words = {"fullbore"};
  words.insert(words.end(), command.words.begin(), command.words.end());
  std::vector<std::string> environment = environment_with(command.environment);
  const std::vector<char*> word_list = pointers(words);
  const std::vector<char*> environment_list = pointers(environment);
  const Descriptor input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor output = open_output(command.output);
  const Descriptor errors = open_output(command.errors);
  const pid_t self = ::getpid();
  const char* const executable = own_executable();
  process_ = ::fork();
  if (process_ == 0)
    become(executable, word_list.data(), environment_list.data(),
           {input.get(), output.get(), errors.get(), command.descriptor}, self);
  if (process_ < 0) throw DataError(fmt::format("cannot start a process: {}", system_reason()));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      errors_(std::move(other.errors_)),
      begin_(other.begin_) {}

ChildProcess::~ChildProcess() {
  if (process_ > 0) stop();
}

ChildEnd ChildProcess::ended(int status) {
  process_ = -1;
  ChildEnd end;
  end.seconds = seconds_since(begin_);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  end.said = last_line(errors_);
  return end;
}

ChildEnd ChildProcess::wait(double seconds, const StopRequest& stop) {
  while (process_ > 0) {
    int status = 0;
    const pid_t done = ::waitpid(process_, &status, WNOHANG);
    if (done == process_) return ended(status);
    if (done < 0 && errno != EINTR) break;  // somebody else has waited for it
    if (stop && stop()) return this->stop();
    if (seconds > 0 && seconds_since(begin_) > seconds) {
      ChildEnd end = this->stop();
      end.stopped = false;
      end.timed_out = true;
      return end;
    }
    std::this_thread::sleep_for(kSlice);
  }
  process_ = -1;
  return {};
}

ChildEnd ChildProcess::stop() {
  if (process_ <= 0) return {};
  ::kill(process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  ChildEnd end = ended(status);
  end.stopped = true;
  return end;
}

ChildEnd run_child(const ChildCommand& command, double seconds, const StopRequest& stop) {
  return ChildProcess(command).wait(seconds, stop);
}

}  // namespace fullbore
