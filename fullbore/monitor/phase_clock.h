#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace fullbore {

/// What the wall time of a run goes to.
enum class RunPhase : uint8_t {
  start,     ///< from the command to the end of the first step, the machine's measurement included
  data,      ///< the loop waits for a batch
  rollouts,  ///< batches are made with the weights of the step (BatchMaker)
  step,      ///< the program of the step runs
  evaluation,  ///< of held-out batches
  checkpoint,  ///< the loop is held up by saving
  host         ///< the rest of the loop: lines, metrics, checks
};
inline constexpr size_t kRunPhases = 7;
/// "start", "data", ...
std::string_view run_phase_name(RunPhase phase);

/// Seconds of each phase.
struct PhaseSeconds {
  std::array<double, kRunPhases> seconds = {};

  double& operator[](RunPhase phase) { return seconds[static_cast<size_t>(phase)]; }
  double operator[](RunPhase phase) const { return seconds[static_cast<size_t>(phase)]; }
  double sum() const;
};

/// A stopwatch that is always in exactly one phase, so that no moment of a run is counted twice or not at all.
class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  /// In RunPhase::start, which began at `start`.
  explicit PhaseClock(Clock::time_point start) : since_(start) {}

  RunPhase phase() const { return phase_; }
  void enter(RunPhase phase, Clock::time_point now = Clock::now());
  /// Up to now.
  PhaseSeconds seconds(Clock::time_point now = Clock::now()) const;

  /// A phase for the duration of a scope; the one around it goes on behind it.
  class Within {
   public:
    Within(PhaseClock& clock, RunPhase phase) : clock_(clock), around_(clock.phase()) {
      clock_.enter(phase);
    }
    ~Within() { clock_.enter(around_); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    PhaseClock& clock_;
    RunPhase around_;
  };

 private:
  RunPhase phase_ = RunPhase::start;
  Clock::time_point since_;
  PhaseSeconds seconds_;
};

}  // namespace fullbore
