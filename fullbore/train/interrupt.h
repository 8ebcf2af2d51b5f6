#pragma once
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace fullbore {

/// SIGINT (a person), SIGTERM and SIGHUP (a system that wants us gone), SIGUSR1 (a batch system's
/// early warning) ask a run to save and leave. Signals that were ignored (nohup) stay so. At each
/// moment one of the two classes below sees to them; objects nest, and each puts back what it found.

/// While it lives, such a signal ends the process at once: for the phases in which there is nothing new to
/// save, reading, tokenising, compiling. That this is safe at any instant is what the writers of files see
/// to, for SIGKILL's sake.
///
/// The signal's own end (128 + its number in a shell) where no checkpoint exists; otherwise
/// ExitCode::kInterrupted. Both write the command to go on with to standard error.
class LeaveOnSignal {
 public:
  /// `command`: what starts the same run again.
  explicit LeaveOnSignal(std::string command);
  ~LeaveOnSignal();
  LeaveOnSignal(const LeaveOnSignal&) = delete;
  LeaveOnSignal& operator=(const LeaveOnSignal&) = delete;

  /// The run has a folder from now on. `resume`: what goes on with it, right from when `config` exists.
  /// `checkpoint` exists from the first save on.
  void run_is(std::string config, std::string checkpoint, std::string resume);
  /// What run_is() was told: whoever sees to signals next advises the same. Empty before.
  const std::string& resume() const { return advice_.back()->resume; }
  /// All is done and saved: to the end of the process no signal may make it look otherwise.
  void done();

  /// What a handler reads.
  struct Advice {
    std::string command;
    std::string config;
    std::string checkpoint;
    std::string resume;
  };

 private:
  std::vector<struct sigaction> found_;
  std::vector<std::unique_ptr<const Advice>> advice_;  ///< the last counts; a handler may read any
  const Advice* before_;
};

/// While it lives, the first such signal is remembered: the run then finishes its step, saves, and
/// leaves with ExitCode::kInterrupted. More of them change nothing, batch systems send several,
/// except that a second SIGINT ends the process at once, as ever. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const { return signal() != 0; }
  int signal() const;  ///< the first that came, or 0

 private:
  std::vector<struct sigaction> found_;
};

/// While it lives, a pipe or a socket whose reader has gone is an error of the write (EPIPE) and not the end of the
/// process (SIGPIPE): a run outlives whoever looks at it. A handler that the program has set stays.
class ClosedPipes {
 public:
  ClosedPipes();
  ~ClosedPipes();
  ClosedPipes(const ClosedPipes&) = delete;
  ClosedPipes& operator=(const ClosedPipes&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace fullbore
