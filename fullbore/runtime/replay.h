#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/base/threads.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// One worker's part of one launch, by the steady clock.
struct LaunchEvent {
  int32_t launch = 0;  ///< index in launch_list(plan)
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

/// What one worker did in the last replay, in the order in which it began.
struct WorkerEvents {
  std::span<const LaunchEvent> events;
  int64_t dropped = 0;  ///< launches that there was no room for
};

/// Walks a plan's launch list: every worker of a team walks the same list and does its share of each
/// launch. In a parallel loop thread groups of workers walk apart, each through trips of its own, in memory of its own,
/// and meet at the end. Throws nothing, allocates nothing, decides nothing that the plan has not decided, save
/// the trips of `until` and counted loops.
class Replay {
 public:
  /// `pointers` holds the address of each of the plan's buffers; entries of Space::slice are moved
  /// by the loops. The plan and the table must outlive the replay.
  Replay(const Plan& plan, std::vector<void*>& pointers, Team& team);

  void run();

  /// Whether runs record their launches. Room for the events of one run is allocated here; while it
  /// is off, a launch costs one comparison more.
  void set_profiling(bool on);
  /// Of the last run while profiling, one entry per worker; valid until the next run. A launch that
  /// was not worth spreading is seen on one worker alone.
  std::vector<WorkerEvents> events() const;

 private:
  /// Those who share launches: the whole team, or a thread group of a parallel loop.
  struct ThreadGroup {
    explicit ThreadGroup(int count) : workers(count), barrier(count) {}
    const int workers;
    Barrier barrier;
    std::vector<void*> pointers = {};  ///< as `pointers_`, with buffers of the thread group's own
  };
  using ThreadGroups = std::vector<std::unique_ptr<ThreadGroup>>;
  /// A launch with what the walk needs at hand.
  struct Launch {
    const Step* step = nullptr;
    const Kernel* kernel = nullptr;
    int32_t index = 0;  ///< in launch_list(plan)
    int64_t items = 0;
    double nanoseconds = 0;    ///< what one worker would need, roughly
    bool parallel = false;     ///< worth spreading over the team
    int worker = 0;            ///< who runs it, if it is not
    bool waits = true;         ///< for all before it: the first of a wave
    bool wave_spread = false;  ///< does its wave involve others than worker 0?
    std::vector<Launch> body;
    // Of a parallel loop:
    const ThreadGroups* thread_groups = nullptr;
    std::vector<int> own;  ///< buffers in the thread groups' memory
  };
  /// Of one worker; a cache line apart from the others'.
  struct alignas(64) EventLog {
    std::vector<LaunchEvent> events;  ///< as many as there is room for
    size_t count = 0;
    int64_t dropped = 0;
  };
  /// Per worker; `last_spread` evolves in the same way on all of a thread group.
  struct Walk {
    int worker = 0;  ///< of the team
    int rank = 0;    ///< within the thread group
    ThreadGroup* thread_group = nullptr;
    void** pointers = nullptr;
    bool solo = false;         ///< worker 0 walks a small loop alone, without barriers
    bool last_spread = false;  ///< did the previous wave involve other workers?
    void** arguments = nullptr;
    EventLog* log = nullptr;  ///< null: not profiling

    char* pointer(int buffer) const {
      return static_cast<char*>(pointers[static_cast<size_t>(buffer)]);
    }
  };

  /// `workers`: of the team, or of a thread group.
  std::vector<Launch> prepare(const std::vector<Step>& steps, int64_t times, int workers);
  void share_wave(std::span<Launch> wave, int workers) const;
  const ThreadGroups& thread_groups(int count);
  void walk(const std::vector<Launch>& launches, Walk& walk);
  void launch(const Launch& launch, Walk& walk);
  void timed_launch(const Launch& launch, Walk& walk);
  void run_loop(const Launch& launch, Walk& walk);
  void run_thread_groups(const Launch& launch, const Walk& walk);
  void begin_trip(const LoopPlan& loop, int64_t index, const Walk& walk);
  /// Orders a wave after the previous one, where they may run on different workers.
  void order(Walk& walk, bool spread);

  const Plan& plan_;
  std::vector<void*>& pointers_;
  Team& team_;
  ThreadGroup all_;  ///< the team
  std::map<int, ThreadGroups>
      thread_groups_;  ///< of parallel loops, by how many make trips side by side
  std::vector<Launch> launches_;
  size_t most_arguments_ = 0;
  std::vector<std::vector<void*>> arguments_;  ///< per worker
  int32_t launch_count_ = 0;
  int64_t most_events_ = 0;          ///< of one worker in one run, all trips made
  std::vector<EventLog> logs_ = {};  ///< per worker; empty: not profiling
};

}  // namespace fullbore
