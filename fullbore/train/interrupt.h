#pragma once

namespace fullbore {

/// While it lives, the first SIGINT, SIGTERM or SIGHUP is remembered instead of ending the process:
/// the run then finishes its step, saves, and leaves with ExitCode::kInterrupted. A second signal of
/// the same kind ends the process at once, as ever. Signals that were ignored (nohup) stay so.
/// One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const { return signal() != 0; }
  int signal() const;  ///< the first that came, or 0
};

}  // namespace fullbore
