#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/private_folder.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// What a run has done of a turn. The first report of a run is empty: it is ready for its first step.
struct TurnReport {
  int64_t resident_peak_bytes = 0;
  double samples = 0;  ///< rows of the batches of these steps
  int core = -1;  ///< of the processor, on which the thread that makes steps is now; -1: not known
  std::vector<double>
      step_seconds;  ///< of each step, with the wait for its batch; evaluations and checkpoints left out
};

/// The most steps that a turn may have: a report is one message.
inline constexpr int64_t kMostStepsOfTurn = 4096;

/// Steps of runs that are compared on a machine that is never quite still: each is a process, and they make a few steps each by
/// turns, so that a slow second hits all alike. Whoever compares holds one end of a socket and grants steps; the run, which has the
/// other end, waits for them between two steps, asleep. What is due after a step, an evaluation say, is done before the turn ends.
/// A run that nobody compares has none of this.
class Turns {
 public:
  /// Of the socket that the environment names (kTurnsVariable), null where there is none. DataError: it is no socket.
  static std::unique_ptr<Turns> from_environment();
  static bool are_asked_for();  ///< does the environment name one?
  explicit Turns(Descriptor socket) : socket_(std::move(socket)) {}

  /// Before a step: waits until it may be made. False where `stop` says so. DataError: whoever grants is gone.
  bool wait(const std::function<bool()>& stop);
  /// The step that wait() allowed is made, all of it.
  void step_made(double samples);
  /// No further step follows: reports the last ones.
  void finish();

 private:
  void report();

  Descriptor socket_;
  int64_t granted_ = 0;
  TurnReport made_;
  std::chrono::steady_clock::time_point begin_;
};

inline constexpr const char* kTurnsVariable = "FULLBORE_TURNS";  ///< the number of an open socket

/// Both ends: of who grants, and of the run.
struct TurnSockets {
  Descriptor granting;
  Descriptor running;
};
/// DataError: the system has none to give.
TurnSockets make_turn_sockets();

/// Allows so many steps, of at most kMostStepsOfTurn. The turn begins on `core` of the processor, where the run may be there; -1:
/// where it is. False: the run is gone.
bool grant_turn(const Descriptor& granting, int64_t steps, int core = -1);
/// The next report, where one comes within `milliseconds`. Failure: the run is gone, or it is none.
enum class TurnAnswer { report, nothing, gone };
TurnAnswer read_turn(const Descriptor& granting, int milliseconds, TurnReport& report);

}  // namespace fullbore
