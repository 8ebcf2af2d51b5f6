#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "fullbore/monitor/chrome_trace.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/runtime/replay.h"

namespace fullbore {

/// All launches of one kernel on one shape from one line of the model, in one step: the layers of a
/// model have the same ones.
struct KernelProfile {
  std::string kernel;    ///< "matmul avx512 f32 [768,128] [384,128]T"
  std::string location;  ///< "models/gpt.cpp:29", or "" for copies
  std::string scope;     ///< of the first of them: "layers.0.mlp.up"
  int64_t launches = 0;  ///< per step
  /// Per step: from the first worker's begin to the last one's end; of the time in which launches ran
  /// side by side, an equal part.
  double seconds = 0;
  double flops = 0;             ///< per step
  double bytes = 0;             ///< per step, every operand moved once
  double roofline_seconds = 0;  ///< per step: what flops and bytes take at the machine's peaks
};

/// Where the time of a step goes, by kernel: medians over the steps that were added.
class StepProfile {
 public:
  /// The plan must outlive the profile.
  StepProfile(const Plan& plan, const MachinePeaks& peaks);

  /// What Program::events() tells of a step of `step_seconds`.
  void add(std::span<const WorkerEvents> workers, double step_seconds);

  int64_t steps() const { return static_cast<int64_t>(step_seconds_.size()); }
  /// The median step, and the part of it in which no launch ran: barriers, the walk along the list.
  double step_seconds() const;
  double idle_seconds() const;
  double roofline_seconds() const { return roofline_seconds_; }
  int64_t dropped() const { return dropped_; }  ///< launches that were not recorded, in all steps
  /// The longest first. A loop's own row holds what its kernels leave: index, carried values.
  std::vector<KernelProfile> kernels() const;

 private:
  struct LaunchTimes {
    std::vector<double> seconds;  ///< per step, all of its launches together
    int64_t launches = 0;         ///< in all steps
  };
  std::vector<double> launch_seconds(std::span<const WorkerEvents> workers);

  const Plan& plan_;
  MachinePeaks peaks_;
  double roofline_seconds_;
  std::vector<PlannedLaunch> list_;
  std::vector<LaunchTimes> times_;  ///< per entry of the list
  std::vector<double> step_seconds_;
  int64_t dropped_ = 0;
};

nlohmann::ordered_json to_json(const StepProfile& profile);
/// A table of the `most` longest kernels in lines of at most `columns` characters; 0: as long as they
/// are.
std::string text(const StepProfile& profile, size_t most, int columns);

/// Draws a step's launches, one row per worker.
void trace_step(ChromeTrace& trace, const Plan& plan, std::span<const PlannedLaunch> list,
                std::span<const WorkerEvents> workers);

}  // namespace fullbore
