#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "fullbore/base/threads.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// Walks a plan's launch list: every worker of a team walks the same list and does its share of each
/// launch. Throws nothing, allocates nothing, decides nothing that the plan has not decided, save
/// the trips of `until` and counted loops.
class Replay {
 public:
  /// `pointers` holds the address of each of the plan's buffers; entries of Space::slice are moved
  /// by the loops. The plan and the table must outlive the replay.
  Replay(const Plan& plan, std::vector<void*>& pointers, Team& team);

  void run();

  /// Seconds of each outermost launch in the last run, filled while profiling.
  bool profiling = false;
  std::vector<double> seconds;

 private:
  /// A launch with what the walk needs at hand.
  struct Launch {
    const Step* step = nullptr;
    const Kernel* kernel = nullptr;
    int64_t items = 0;
    bool parallel = false;  ///< worth spreading over the team
    std::vector<Launch> body;
  };
  /// Per worker; `last_parallel` evolves in the same way on all of them.
  struct Walk {
    int worker = 0;
    bool solo = false;           ///< worker 0 walks a small loop alone, without barriers
    bool last_parallel = false;  ///< did the previous launch involve other workers?
    void** arguments = nullptr;
  };

  std::vector<Launch> prepare(const std::vector<Step>& steps);
  void walk(const std::vector<Launch>& launches, Walk& walk, bool outermost);
  void launch(const Launch& launch, Walk& walk);
  void run_loop(const Launch& launch, Walk& walk);
  void begin_trip(const LoopPlan& loop, int64_t index);
  /// Orders this launch after the previous one, where they may run on different workers.
  void order(Walk& walk, bool parallel);
  char* pointer(int buffer) const {
    return static_cast<char*>(pointers_[static_cast<size_t>(buffer)]);
  }

  const Plan& plan_;
  std::vector<void*>& pointers_;
  Team& team_;
  std::vector<Launch> launches_;
  size_t most_arguments_ = 0;
  std::vector<std::vector<void*>> arguments_;  ///< per worker
};

}  // namespace fullbore
