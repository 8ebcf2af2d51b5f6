#include "tests/support/command_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "fullbore/base/files.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kLimit = std::chrono::minutes(10);  // planning alone takes several times as long
#else
constexpr auto kLimit = std::chrono::minutes(2);
#endif

/// In the child: becomes the command, or ends with 127.
[[noreturn]] void become_command(const std::string& folder, std::vector<std::string> arguments) {
  if (chdir(folder.c_str()) != 0) _exit(127);
  std::vector<char*> words = {const_cast<char*>(testing::command_path().c_str())};
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  execv(testing::command_path().c_str(), words.data());
  _exit(127);
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int wait_for(pid_t child, const std::function<void(pid_t)>& while_running) {
  return code_of(wait_at_most(child, kLimit, while_running));
}

/// The parent's side of a Stream. Its own descriptors close with the command's exec.
class Wire {
 public:
  explicit Wire(Stream stream) {
    if (stream == Stream::full) write_ = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (stream == Stream::kept || stream == Stream::closed_pipe) {
      int ends[2] = {-1, -1};
      if (pipe2(ends, O_CLOEXEC) != 0) abort();
      read_ = ends[0];
      write_ = ends[1];
      fcntl(write_, F_SETPIPE_SZ, 1 << 20);
    }
    if (stream == Stream::closed_pipe) close(std::exchange(read_, -1));
  }
  ~Wire() {
    if (read_ >= 0) close(read_);
    if (write_ >= 0) close(write_);
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  void attach(int descriptor) const {
    if (write_ >= 0)
      dup2(write_, descriptor);
    else
      close(descriptor);
  }
  /// After the command's end.
  std::string read_all() const {
    if (read_ < 0) return "";
    fcntl(read_, F_SETFL, O_NONBLOCK);
    std::string text;
    char bytes[4096];
    for (ssize_t count = 0; (count = read(read_, bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(count));
    return text;
  }

 private:
  int read_ = -1;
  int write_ = -1;
};

}  // namespace

int wait_at_most(pid_t child, std::chrono::seconds limit,
                 const std::function<void(pid_t)>& while_running) {
  Clock::duration waited{};
  Clock::time_point before = Clock::now();
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    if (while_running) while_running(child);
    const Clock::time_point now = Clock::now();
    waited += std::min<Clock::duration>(now - before, std::chrono::seconds(1));
    before = now;
    if (waited > limit) {
      ADD_FAILURE() << "the command did not end";
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

CommandResult run_command(const std::string& folder, const std::vector<std::string>& arguments,
                          const std::function<void(pid_t)>& while_running) {
  const std::string out = folder + "/.stdout";
  const std::string err = folder + "/.stderr";
  // Opened here: the child may be killed before it has done anything.
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  const int out_file = open(out.c_str(), flags, 0666);
  const int err_file = open(err.c_str(), flags, 0666);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out_file, STDOUT_FILENO);
    dup2(err_file, STDERR_FILENO);
    become_command(folder, arguments);
  }
  close(out_file);
  close(err_file);
  CommandResult result;
  result.exit_code = wait_for(child, while_running);
  result.out = read_file(out).value();
  result.err = read_file(err).value();
  fs::remove(out);
  fs::remove(err);
  return result;
}

CommandResult run_command_with(const CommandStreams& streams, const std::string& folder,
                               const std::vector<std::string>& arguments) {
  const Wire out(streams.out);
  const Wire err(streams.err);
  const pid_t child = fork();
  if (child == 0) {
    const auto most = static_cast<rlim_t>(streams.full_disk ? 0 : streams.most_file_bytes);
    const rlimit limit{most, most};
    if ((streams.full_disk || streams.most_file_bytes >= 0) && setrlimit(RLIMIT_FSIZE, &limit) != 0)
      _exit(127);
    out.attach(STDOUT_FILENO);
    err.attach(STDERR_FILENO);
    become_command(folder, arguments);
  }
  CommandResult result;
  result.exit_code = wait_for(child, {});
  result.out = out.read_all();
  result.err = err.read_all();
  return result;
}

CommandResult run_command_on_terminal(const std::string& folder,
                                      const std::vector<std::string>& arguments, int columns) {
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    become_command(folder, arguments);
  }
  CommandResult result;
  char bytes[4096];
  // A closed terminal is EIO for its reader.
  for (ssize_t count = 0; (count = read(terminal, bytes, sizeof bytes)) > 0;)
    result.out.append(bytes, static_cast<size_t>(count));
  close(terminal);
  result.exit_code = wait_for(child, {});
  return result;
}

std::map<std::string, std::string> folder_contents(const std::string& folder) {
  std::map<std::string, std::string> contents;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file())
      contents[fs::relative(entry.path(), folder).string()] =
          read_file(entry.path().string()).value();
  return contents;
}

}  // namespace fullbore
