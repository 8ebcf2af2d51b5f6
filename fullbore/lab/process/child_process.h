#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fullbore {

/// How a process of this program ended.
struct ChildEnd {
  int exit_code = -1;      ///< of exit(); -1: ended by a signal, or could not be run
  int signal = 0;          ///< that ended it
  bool timed_out = false;  ///< killed, for its deadline had passed
  bool stopped = false;    ///< killed, for the parent was asked to stop
  double seconds = 0;      ///< from its start to its end
  std::string said;        ///< the last line that it wrote to standard error, made printable

  bool ok() const { return exit_code == 0; }
  /// For people: "exit code 2: config: ...", "killed by signal 9", "not done within 60 s". "" if it is ok.
  std::string reason() const;
};

/// What is started.
struct ChildCommand {
  std::vector<std::string> words;  ///< behind the program's name: {"train", "c.yaml", "run.dir=x"}
  std::string output = {};         ///< file that receives standard output; empty: nothing does
  std::string errors = {};         ///< likewise of standard error
  /// Set in its environment, beside what this process has.
  std::vector<std::pair<std::string, std::string>> environment = {};
  int descriptor = -1;  ///< an open file that it inherits under the same number; -1: none
};

/// This very program (own_executable()) as a process of its own: what it does wrong, and what it takes, ends with it.
/// It is killed when its object or the thread that started it ends, however that ends. It leads a process group, so that Ctrl-C
/// on a terminal reaches its parent alone, who decides.
class ChildProcess {
 public:
  /// DataError: it cannot be started, or a file cannot be made.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  pid_t id() const { return process_; }  ///< -1 once it has ended
  /// Waits for its end, at most `seconds`, and kills it then; 0: as long as it takes. Stops it where `stop` says so.
  ChildEnd wait(double seconds = 0, const std::function<bool()>& stop = {});
  /// Kills it. Its end says stopped.
  ChildEnd stop();

 private:
  ChildEnd ended(int status);

  pid_t process_ = -1;
  std::string errors_;
  std::chrono::steady_clock::time_point begin_;
};

/// Asked now and then by whoever waits: is everything to stop? InterruptGuard::requested(), say. May be empty: never.
using StopRequest = std::function<bool()>;

/// Starts the command and waits for its end, at most `seconds`; 0: as long as it takes. Stops it where `stop` says so.
ChildEnd run_child(const ChildCommand& command, double seconds = 0, const StopRequest& stop = {});

}  // namespace fullbore
