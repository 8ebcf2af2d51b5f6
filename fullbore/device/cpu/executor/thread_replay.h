#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/base/threads.h"
#include "fullbore/device/cpu/executor/worker_choice.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/recording.h"

namespace fullbore::cpu {

/// Walks a recording on all threads of a pool: every worker walks the same list and does its share of each launch. In a
/// parallel loop thread groups of workers walk apart, each through iterations of its own, in memory of its own, and meet
/// at the end. Where other processes have the processors, the first worker may do all of it (worker_choice.h). Throws nothing, allocates nothing, decides nothing that the plan has not decided, save the iterations of
/// `until` and counted loops, and that.
class ThreadReplay final : public Replayable {
 public:
  /// The pool must outlive it.
  ThreadReplay(const std::vector<RecordedLaunch>& recorded, ThreadPool& pool);

  void bind_batch(std::span<const void* const> host) override;
  void run() override;
  void wait() override {}
  int64_t iterations_made(int loop) const override;
  /// Room for the events of one run is allocated here; while it is off, a launch costs one comparison more.
  void set_profiling(bool on) override;
  /// A launch that was not worth spreading is seen on one worker alone.
  std::vector<LaneEvents> events() const override;

 private:
  /// Those who share launches: the whole pool, or a thread group of a parallel loop.
  struct ThreadGroup {
    explicit ThreadGroup(int count) : workers(count), barrier(count) {}
    const int workers;
    Barrier barrier;
  };
  using ThreadGroups = std::vector<std::unique_ptr<ThreadGroup>>;

  /// Where an operand lies: at `base`, or in the batch, moved by the loops around.
  struct Place {
    char* base = nullptr;
    int batch_input = -1;
    int64_t group_stride = 0;  ///< of the memory of thread groups that it lies in; 0: in none
    struct Move {
      size_t loop = 0;  ///< by depth, outermost first
      int64_t stride = 0;
    };
    std::vector<Move> moves = {};
    std::vector<size_t> exchanged_by = {};  ///< LaunchOperand
    std::vector<char*> exchanged_bases = {};
    bool is_fixed() const {
      return batch_input < 0 && group_stride == 0 && moves.empty() && exchanged_by.empty();
    }
  };
  struct Loop;
  /// A launch with what the walk needs at hand.
  struct PreparedLaunch {
    RecordedLaunch::Kind kind = RecordedLaunch::Kind::kernel;
    int32_t id = 0;
    const CpuKernel* kernel = nullptr;
    std::vector<void*> arguments = {};  ///< those that are fixed are final
    std::vector<std::pair<size_t, Place>> moving =
        {};  ///< the others, by their place in `arguments`
    int64_t items = 0;
    double nanoseconds = 0;     ///< what one worker would need, roughly
    bool parallel = false;      ///< worth spreading over the workers
    int worker = 0;             ///< who runs it, if it is not
    bool waits = true;          ///< for all before it: the first of launches side by side
    bool group_spread = false;  ///< do those side by side with it involve others than worker 0?
    std::shared_ptr<Loop> loop = {};
  };
  struct Rows {
    Place rows;
    int64_t row_bytes = 0;
  };
  struct Loop {
    LoopRange range;
    std::optional<Place> count, stop, index, executed;
    std::vector<PreparedLaunch> body;       ///< what is carried by copies comes last
    std::vector<PreparedLaunch> exchanged;  ///< copies behind an odd number of iterations
    std::vector<Rows> cleared;              ///< stacks whose rows that were not made are zeroed
    bool shares_clearing = false;           ///< among the workers
    const ThreadGroups* thread_groups = nullptr;  ///< of a parallel loop
    size_t depth = 0;
    size_t number = 0;  ///< among all loops
  };
  /// Of one worker; a cache line apart from the others'.
  struct alignas(64) EventLog {
    std::vector<LaunchEvent> events;  ///< as many as there is room for
    size_t count = 0;
    int64_t dropped = 0;
  };
  /// Per worker; `last_spread` evolves in the same way on all of a thread group.
  struct Walk {
    int worker = 0;  ///< of the pool
    int rank = 0;    ///< within the thread group
    ThreadGroup* thread_group = nullptr;
    int64_t group = 0;           ///< number of the thread group
    bool solo = false;           ///< worker 0 walks a small loop alone, without barriers
    bool alone = false;          ///< it walks everything so: `solo` too
    bool last_spread = false;    ///< did the previous launches involve other workers?
    int64_t* indices = nullptr;  ///< of the loops around, outermost first
    int64_t* made = nullptr;     ///< iterations that they have made, likewise
    int64_t* totals =
        nullptr;  ///< iterations of each loop in this run, of those that this worker counts
    void** arguments = nullptr;
    EventLog* log = nullptr;  ///< null: not profiling
  };
  /// What a walk works with, of one worker.
  struct Scratch {
    std::vector<int64_t> indices;
    std::vector<int64_t> made;
    std::vector<int64_t> totals;
    std::vector<void*> arguments;
  };

  /// `around`: the loops that the launches are in; `workers`: of the pool, or of a thread group.
  std::vector<PreparedLaunch> prepare(const std::vector<RecordedLaunch>& recorded,
                                      std::vector<const LoopRange*>& around, int64_t times,
                                      int workers);
  PreparedLaunch prepare_loop(const RecordedLaunch& recorded, std::vector<const LoopRange*>& around,
                              int64_t times, int workers);
  static Place place_of(const LaunchOperand& operand, std::span<const LoopRange* const> around);
  static std::optional<Place> place_of(const std::optional<LaunchOperand>& operand,
                                       std::span<const LoopRange* const> around);
  PreparedLaunch prepare_launch(const RecordedLaunch& recorded,
                                std::span<const LoopRange* const> around, int workers);
  std::vector<PreparedLaunch> prepare_copies(std::span<const RecordedCarry> copies,
                                             std::span<const LoopRange* const> around, int workers);
  void share(std::span<PreparedLaunch> side_by_side, int workers) const;
  const ThreadGroups& thread_groups(int count);

  Walk begin_walk(int worker);
  int64_t delay_of_workers() const;
  char* at(const Place& place, const Walk& walk) const;
  void walk(const std::vector<PreparedLaunch>& launches, Walk& walk);
  void launch(const PreparedLaunch& launch, Walk& walk);
  void timed_launch(const PreparedLaunch& launch, Walk& walk);
  void run_loop(const PreparedLaunch& launch, Walk& walk);
  void run_thread_groups(const Loop& loop, const Walk& walk);
  void run_thread_group(const Loop& loop, int number, const Walk& walk);
  void finish_loop(const Loop& loop, int64_t most, int64_t executed, Walk& walk);
  void begin_iteration(const Loop& loop, int64_t index, const Walk& walk) const;
  /// Orders launches after the previous ones, where they may run on different workers.
  void order(Walk& walk, bool spread);

  ThreadPool& pool_;
  WorkerChoice choice_;
  int64_t delay_ns_ = 0;  ///< of all workers, at the begin of the window
  ThreadGroup all_;
  std::map<int, ThreadGroups> thread_groups_;  ///< of parallel loops, by how many run side by side
  std::vector<PreparedLaunch> launches_;
  std::vector<const void*> batch_;
  size_t most_arguments_ = 0;
  size_t deepest_ = 0;
  std::map<int, size_t> loops_;      ///< number of each loop, by its id
  std::vector<Scratch> scratch_;     ///< per worker
  int64_t most_events_ = 0;          ///< of one worker in one run, all iterations made
  std::vector<EventLog> logs_ = {};  ///< per worker; empty: not profiling
};

/// Records for the threads of a pool.
class ThreadRecorder final : public Recording {
 public:
  explicit ThreadRecorder(ThreadPool& pool) : pool_(pool) {}
  std::unique_ptr<Replayable> finish() override {
    return std::make_unique<ThreadReplay>(take(), pool_);
  }

 private:
  ThreadPool& pool_;
};

}  // namespace fullbore::cpu
