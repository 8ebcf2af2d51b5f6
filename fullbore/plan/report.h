#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/plan/plan.h"
#include "fullbore/plan/plan_work.h"

namespace fullbore {

/// All launches of one kind together: an op's name, "fused" or "copy". Those inside a loop count
/// once per iteration.
struct LaunchKind {
  std::string name;
  int64_t launches = 0;  ///< rounded, of several runs
  double flops = 0;
  double bytes = 0;             ///< least traffic
  double roofline_seconds = 0;  ///< copies: their bytes over the bandwidth
};

/// Where the arena's or any other bytes went.
struct BufferUse {
  std::string space;
  int64_t bytes = 0;
  std::string what;
};

/// A plan summed up.
struct PlanReport {
  std::string name;
  int64_t launches = 0;
  int64_t launch_levels = 0;  ///< groups of launches that do not wait for one another
  bool at_most = false;       ///< counts a loop to its end that the data may end earlier
  double flops = 0;
  double bytes_moved = 0;
  double roofline_seconds = 0;
  int64_t peak_bytes = 0;
  int64_t state_bytes = 0;
  int64_t host_bytes = 0;         ///< of State in the host's memory, not in the peak
  HostTraffic host_traffic = {};  ///< of a step
  int64_t derived_bytes = 0;      ///< of parameters, in the form in which matmuls read them
  int64_t arena_bytes = 0;
  int64_t batch_bytes = 0;
  int64_t result_bytes = 0;
  int64_t constant_bytes = 0;
  std::vector<LaunchKind> kinds;   ///< the longest roofline time first
  std::vector<BufferUse> largest;  ///< at most `buffers`, the largest first, rows left out
};
/// `made`: iterations that loops make in a run; empty: as many as they can.
PlanReport report_plan(const Plan& plan, const MachinePeaks& peaks, const LoopIterations& made = {},
                       int buffers = 10);

nlohmann::ordered_json to_json(const PlanReport& report);
/// The same as an indented table.
std::string text(const PlanReport& report);

}  // namespace fullbore
