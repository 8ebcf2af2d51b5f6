#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

/// One entry of a plan's launch list, wherever it stands.
struct LaunchEntry {
  const PlannedLaunch* launch = nullptr;
  const Graph* graph = nullptr;  ///< that its node belongs to: the plan's, or a loop's body
  int parent = -1;               ///< the loop that it is in, by index in the list; -1: none
  int64_t times = 1;             ///< in one replay, at most
  int thread_groups = 1;         ///< that make it side by side: of the parallel loop that it is in

  const Node* node() const;  ///< null for copies
};

/// Every launch of the plan, loops before what they hold: the order by which the runtime's events
/// name launches. The plan must outlive the list.
std::vector<LaunchEntry> launch_list(const Plan& plan);

/// "matmul avx512 f32 [768,128] [384,128]T", "copy 64 bytes", "loop of 16 iterations".
std::string launch_text(const Plan& plan, const LaunchEntry& entry);

/// Of one launch, without what a loop holds: there, what its carried values move in `iterations`, all of them by default.
Cost launch_cost(const Plan& plan, const LaunchEntry& entry, std::optional<double> iterations = {});
/// Of one launch likewise: no kernel can be faster.
double launch_roofline_seconds(const Plan& plan, const LaunchEntry& entry,
                               const MachinePeaks& peaks, std::optional<double> iterations = {});

}  // namespace fullbore
