#pragma once
#include <vector>

#include "fullbore/plan/plan.h"

namespace fullbore {

/// Iterations that loops make in one run, in all where a loop is begun several times: by the entry of the launch list
/// (launch_list.h); entries of other launches are 0. Means of several runs may be fractions. Empty: nobody knows.
using LoopIterations = std::vector<double>;

/// Each loop to its end.
LoopIterations most_iterations(const Plan& plan);
/// May a loop of it make fewer iterations than that, as the data decide?
bool has_open_loops(const Plan& plan);

/// What a run does.
struct PlanWork {
  double flops = 0;
  double bytes = 0;             ///< least traffic
  double roofline_seconds = 0;  ///< no run can be faster
};
PlanWork plan_work(const Plan& plan, const MachinePeaks& peaks, const LoopIterations& made);

/// The part of flops that one loop has: a sum that needs no graph any more.
struct LoopFlops {
  int loop = -1;     ///< entry of the launch list; -1: outside of all loops
  double flops = 0;  ///< of one iteration, without those of loops in it
};
std::vector<LoopFlops> flops_by_loop(const Plan& plan);

}  // namespace fullbore
