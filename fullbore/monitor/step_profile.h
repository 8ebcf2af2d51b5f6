#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/occupancy.h"
#include "fullbore/device/recorder.h"
#include "fullbore/monitor/trace_file.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/plan/plan_work.h"

namespace fullbore {

/// All launches of one kernel on one shape from one line of the model, in one step: the layers of a
/// model have the same ones.
struct KernelProfile {
  std::string kernel;    ///< "matmul avx512 f32 [768,128] [384,128]T"
  std::string location;  ///< "models/example.cpp:29", or "" for copies
  std::string scope;     ///< of the first of them: "layers.0.mlp.up"
  double launches = 0;   ///< per step
  /// Per step: from the first worker's begin to the last one's end; of the time in which launches ran
  /// side by side, an equal part.
  double seconds = 0;
  double flops = 0;             ///< per step
  double bytes = 0;             ///< per step, every operand moved once
  double roofline_seconds = 0;  ///< per step: what flops and bytes take at the machine's peaks
  /// Of the launches, the one that is held least. Empty: the device has no such thing, or it is no kernel.
  std::optional<Occupancy> occupancy = {};
};

/// The program for one shape of batch.
struct ProfiledShape {
  std::string batch;  ///< "[12,64]", for people
  const Plan* plan = nullptr;
};

/// Where the time of a step goes, by kernel: medians over the steps that were added. Where batches come
/// in several shapes, medians over the steps of each, and their mean by how many steps each had: what is
/// said of "a step" is then said of the mixture, and kernels of several shapes that read alike, such as
/// an optimiser's, are one.
class StepProfile {
 public:
  /// The plans must outlive the profile.
  StepProfile(const Plan& plan, const MachinePeaks& peaks);
  StepProfile(const std::vector<ProfiledShape>& shapes, const MachinePeaks& peaks);

  /// What Program::events() tells of a step of `step_seconds`; `shape`: of its batch; `made`: what
  /// Program::iterations_made() tells, empty: loops count to their ends.
  void add(std::span<const LaneEvents> workers, double step_seconds, size_t shape = 0,
           const LoopIterations& made = {});

  /// Rooflines by these peaks from now on.
  void set_peaks(const MachinePeaks& peaks);

  /// Kernels are told with their occupancy from now on. `device`: that of all plans.
  void set_occupancies(OccupancySource& device);

  int64_t steps() const;
  /// A step, and the part of it in which no launch ran: barriers, the walk along the list.
  double step_seconds() const;
  double idle_seconds() const;
  double roofline_seconds() const;
  /// Does the roofline count loops to their ends that the data may have ended earlier?
  bool at_most() const;
  int64_t dropped() const { return dropped_; }  ///< launches that were not recorded, in all steps
  /// The longest first. A loop's own row holds what its kernels leave: index, carried values.
  std::vector<KernelProfile> kernels() const;

  /// Of the steps on one shape of batch.
  struct ShapeTimes {
    std::string batch;
    int64_t steps = 0;
    double step_seconds = 0;  ///< median; 0: no step was added
    double roofline_seconds = 0;
    double share = 0;  ///< of the time of all steps
  };
  std::vector<ShapeTimes> shapes() const;

 private:
  struct LaunchTimes {
    std::vector<double> seconds;  ///< per step, all of its launches together
    int64_t launches = 0;         ///< in all steps
  };
  /// What was added of one shape.
  struct ShapeProfile {
    std::string batch;
    const Plan* plan = nullptr;
    LoopIterations iterations = {};  ///< of all steps together
    bool at_most = false;            ///< nobody told of some step
    std::vector<LaunchEntry> list;
    std::vector<LaunchTimes> times;  ///< per entry of the list
    std::vector<double> step_seconds;
    std::vector<std::optional<Occupancy>> occupancies = {};  ///< per kernel of the plan, if told

    double median_step() const;
    double idle_seconds() const;
    LoopIterations mean_iterations() const;
  };
  /// By kernel and location.
  using KernelGroups = std::map<std::pair<std::string, std::string>, KernelProfile>;
  /// Its part of the steps.
  double weight(const ShapeProfile& shape) const;
  void add_kernels(const ShapeProfile& shape, KernelGroups& groups) const;
  static void add_occupancy(const ShapeProfile& shape, const PlannedLaunch& launch,
                            KernelProfile& group);
  double roofline_of(const ShapeProfile& shape) const;

  MachinePeaks peaks_;
  std::vector<ShapeProfile> shapes_;
  int64_t dropped_ = 0;
};

nlohmann::ordered_json to_json(const StepProfile& profile);
/// A table of the shapes, if there are several, and one of the `most` longest kernels, in lines of at most `columns` characters; 0: as long as they
/// are.
std::string text(const StepProfile& profile, size_t most, int columns);

/// Draws a step's launches, one row per worker, and how many bytes of the arena live from launch to launch.
void trace_step(TraceFile& trace, const Plan& plan, std::span<const LaunchEntry> list,
                std::span<const LaneEvents> workers);

}  // namespace fullbore
