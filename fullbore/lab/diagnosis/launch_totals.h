#pragma once
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/recorder.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/plan/plan_work.h"

namespace fullbore {

/// All launches of one op, its gradient's among them, over the steps that were recorded.
struct KernelClass {
  std::string name;     ///< of the op: "matmul", "attention", "fused"; "copy", "loop"
  double seconds = 0;   ///< as LaunchTime has them
  double launches = 0;  ///< of all those steps
  double flops = 0;
  double bytes = 0;             ///< every operand moved once
  double roofline_seconds = 0;  ///< what flops and bytes take at the machine's peaks
  double memory_seconds = 0;    ///< the part of those that memory bounds, not arithmetic
};

/// "attention" of "attention_gradient".
std::string kernel_class_of(std::string_view op);

/// Sums over recorded steps, each launch by its class. In contrast to StepProfile there are no medians: the classes and
/// the time between launches together are the time of the steps.
class LaunchTotals {
 public:
  /// One plan for each shape of batch; they must outlive it.
  explicit LaunchTotals(const std::vector<const Plan*>& plans);

  /// As StepProfile::add().
  void add(std::span<const LaneEvents> workers, double step_seconds, size_t shape,
           const LoopIterations& made);

  int64_t steps() const { return steps_; }
  double step_seconds() const { return step_seconds_; }
  double idle_seconds() const { return idle_seconds_; }  ///< in which no launch ran
  int64_t dropped() const { return dropped_; }           ///< launches that were not recorded
  /// The longest first; those that took no time are left out.
  std::vector<KernelClass> classes(const MachinePeaks& peaks) const;

 private:
  struct Shape {
    const Plan* plan = nullptr;
    std::vector<LaunchEntry> list;
    std::vector<double> seconds;     ///< per entry of the list
    std::vector<double> launches;    ///< likewise
    std::vector<double> iterations;  ///< likewise, of loops
  };
  std::vector<Shape> shapes_;
  int64_t steps_ = 0;
  double step_seconds_ = 0;
  double idle_seconds_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace fullbore
