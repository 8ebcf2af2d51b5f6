#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/train/trainer.h"
#include "workloads/latentwire/switches.h"

namespace fullbore::latentwire {

using JobOf = std::function<TrainingJob(const Config&)>;

/// What two paths through the first batch of a job differ by.
struct PathDifference {
  double loss = 0;      ///< |a - b| / |a|
  double gradient = 0;  ///< norm of the difference over the norm, all parameters together
};
/// Of one step from the same initial values. The gradient is what descent by it alone moved the parameters by; for
/// fused_optimizer it is what two steps of the job's own optimizer moved them by.
PathDifference compare_paths(const Config& off, const Config& on, bool own_optimizer,
                             const JobOf& job);

/// What a difference may be: 1e-5; where a path is of a narrower precision, 1e-2.
double tolerance_of(const Config& config);

/// Both paths of every switch whose mode is `check`, in the order of rollout(), are compared on the first batch. A switch
/// whose paths agree is on from then on, one whose paths differ, or cannot be run, is off.
/// -> a line for people about each.
std::vector<std::string> settle_checked_switches(Config& config, const JobOf& job);

}  // namespace fullbore::latentwire
