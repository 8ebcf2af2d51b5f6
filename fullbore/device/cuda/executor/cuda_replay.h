#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/driver/in_flight.h"
#include "fullbore/device/cuda/executor/batch_staging.h"
#include "fullbore/device/cuda/executor/conditional_loops.h"
#include "fullbore/device/cuda/executor/launch_kinds.h"
#include "fullbore/device/cuda/executor/launchable_graph.h"
#include "fullbore/device/cuda/executor/program_walk.h"
#include "fullbore/device/cuda/executor/stream_sink.h"
#include "fullbore/device/recording.h"

namespace fullbore::cuda {

/// Replays a program on a card. It is a graph, which one call of the driver launches: loops are in it iteration by
/// iteration, those whose counts depend on data as conditional nodes, as long as there are no more than 20 000 nodes and the
/// driver has such nodes. Other loops are stepped by the host, which reads their counts and stop flags; what lies between
/// them is a graph each, and so is what their bodies have between inner loops that are stepped too, told in each iteration
/// of what lies elsewhere then. While profiling, and with FULLBORE_CUDA_BLOCKING=1, there are no graphs: every launch is made by
/// the host, one after another.
///
/// Copies to the host that may go on beside the next run are a graph of their own, in a stream of their own. The next run waits
/// for them where it was recorded to; one of another program, and one without graphs, before it begins; and so does whoever
/// looks at State in the host's memory.
class CudaReplay final : public Replayable {
 public:
  /// `behind`: such copies; `first_waiting`: the launch that comes first behind those of the run before; 0: all do.
  CudaReplay(std::shared_ptr<Context> context, std::vector<RecordedLaunch> launches,
             std::vector<RecordedLaunch> behind = {}, size_t first_waiting = 0);
  ~CudaReplay() override;

  void bind_batch(std::span<const void* const> host) override;
  void run() override;
  void wait() override;
  int64_t iterations_made(int loop) const override;
  void set_profiling(bool on) override;
  std::vector<LaneEvents> events() const override;

 private:
  void load(const std::vector<RecordedLaunch>& launches);
  void make_copies_behind();
  void run_copies_behind();

  std::shared_ptr<Context> context_;
  std::vector<RecordedLaunch> launches_;
  std::vector<RecordedLaunch> behind_;
  size_t first_waiting_;
  bool blocking_;
  InFlight in_flight_;
  BatchStaging batch_;
  std::unique_ptr<ConditionalLoops> conditional_;  ///< null: the host steps all of these
  ProgramParts parts_;
  LaunchKinds kinds_;
  ProgramPieces pieces_;
  StreamSink stream_;
  std::unique_ptr<LaunchableGraph> copies_behind_;  ///< null: there are none, or no graphs
  std::unique_ptr<Event> made_;                     ///< before them
  std::map<int, CountOnCard> counts_on_card_;
  // Of the last run.
  std::map<int, int64_t> iterations_;
  bool had_graphs_ = false;
  bool is_profiling_ = false;
  bool runs_ = false;
};

class CudaRecorder final : public Recording {
 public:
  explicit CudaRecorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  void copy_behind(int id, const LaunchOperand& from, const LaunchOperand& to,
                   int64_t bytes) override {
    behind_.push_back(
        {.kind = RecordedLaunch::Kind::copy, .id = id, .operands = {from, to}, .bytes = bytes});
  }
  void wait_for_copies_behind() override { first_waiting_ = recorded(); }
  std::unique_ptr<Replayable> finish() override {
    return std::make_unique<CudaReplay>(context_, take(), std::move(behind_), first_waiting_);
  }

 private:
  std::shared_ptr<Context> context_;
  std::vector<RecordedLaunch> behind_;
  size_t first_waiting_ = 0;
};

}  // namespace fullbore::cuda
