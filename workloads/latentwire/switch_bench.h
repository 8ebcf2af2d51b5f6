#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "workloads/latentwire/switch_check.h"

namespace fullbore::latentwire {

/// What is measured of a job with some of its switches on.
struct SwitchStage {
  const Switch* added = nullptr;  ///< null: all are off
  bool kept = true;
  std::string reason = {};  ///< why it was turned off
  std::vector<double> losses = {};
  double first_accuracy = 0;   ///< in the last steps, the mean over them and receivers
  double loss_difference = 0;  ///< the largest |a - b| / |a| of any step, a with all switches off
  double step_seconds = 0;     ///< median, without the wait for the batch
  double wait_share = 0;       ///< of the time, waiting for batches
  double model_seconds = 0;    ///< of a step, in the frozen models, forth and back
  int64_t planned_bytes = 0;
  int64_t resident_bytes = 0;  ///< of the process, at most
  int64_t growth_bytes =
      0;  ///< of what is resident, from step 20 on, until the last steps are recorded
};

struct SwitchBenchOptions {
  int64_t steps = 100;
  std::vector<const Switch*> tried = rollout();
};

/// Steps of the job with all switches off, then with one more of them on each time. One whose losses leave those of all-off
/// by more than tolerance_of(), or whose first tokens are right less often by more than a point, is off from then on, as is
/// one that cannot be run. `progress` is told what is being done, and for how many seconds still (negative: not known).
std::vector<SwitchStage> run_switch_bench(
    const Config& config, const std::vector<std::string>& receivers, const JobOf& job,
    const SwitchBenchOptions& options,
    const std::function<void(const std::string& doing, double seconds_left)>& progress);

/// A table for people, and what is not measured.
std::string switch_table(const std::vector<SwitchStage>& stages);
nlohmann::ordered_json switch_json(const std::vector<SwitchStage>& stages);

}  // namespace fullbore::latentwire
