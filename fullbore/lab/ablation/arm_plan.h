#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/lab/process/child_process.h"

namespace fullbore {

/// What `plan` says of a job with an arm's settings, before anything is run.
struct ArmPlan {
  std::string refused = {};      ///< why there is none, for people; empty: there is
  std::string fingerprint = {};  ///< equal where the programs are
  int64_t planned_bytes = 0;     ///< peak of all programs
  int64_t process_bytes = 0;     ///< of the process beside them, at most
  double roofline_seconds = 0;   ///< of a training step
  double flops = 0;              ///< likewise
  std::string unit = {};         ///< what rates are of: "tokens", "spectra"
  bool operator==(const ArmPlan&) const = default;
};

/// Plans the job as a process of its own. `file`: where its output goes, with ".err" beside it.
ArmPlan plan_arm(const std::string& config, const std::vector<std::string>& settings,
                 const std::string& file, const StopRequest& stop);

/// Output of `plan --json`. A text that is none is refused.
ArmPlan parse_arm_plan(const std::string& text);

}  // namespace fullbore
