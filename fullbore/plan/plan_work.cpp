#include "fullbore/plan/plan_work.h"

#include <algorithm>
#include <functional>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

/// A plan's launches outside of loops, or a loop's body: how often it is walked is its loop's iterations.
struct Level {
  int loop = -1;  ///< entry of the launch list
  const Graph* graph = nullptr;
  const std::vector<PlannedLaunch>* launches = nullptr;
};

/// `visit(level, node)` for every node but loops, which are levels of their own. Entries are numbered as launch_list() does.
using Visit = std::function<void(const Level&, const Node&)>;
void visit_nodes(const Level& level, int& next, const Visit& visit) {
  std::vector<bool> is_level(level.graph->nodes().size(), false);
  for (const PlannedLaunch& launch : *level.launches) {
    const int entry = next++;
    if (launch.kind != PlannedLaunch::Kind::loop) continue;
    const auto node = static_cast<size_t>(launch.node);
    is_level[node] = true;
    visit_nodes({entry, level.graph->nodes()[node].body.get(), &launch.loop->body}, next, visit);
  }
  for (size_t i = 0; i < is_level.size(); ++i)
    if (!is_level[i]) visit(level, level.graph->nodes()[i]);
}
void visit_nodes(const Plan& plan, const Visit& visit) {
  int next = 0;
  visit_nodes({-1, &plan.graph, &plan.launches}, next, visit);
}

void add_most(const std::vector<PlannedLaunch>& launches, double times,
              LoopIterations& iterations) {
  for (const PlannedLaunch& launch : launches) {
    const size_t entry = iterations.size();
    iterations.push_back(0);
    if (launch.kind != PlannedLaunch::Kind::loop) continue;
    iterations[entry] = times * static_cast<double>(launch.loop->iterations);
    add_most(launch.loop->body, iterations[entry], iterations);
  }
}

bool has_open_loops(const std::vector<PlannedLaunch>& launches) {
  return std::ranges::any_of(launches, [](const PlannedLaunch& launch) {
    return launch.loop &&
           (launch.loop->count >= 0 || launch.loop->stop >= 0 || has_open_loops(launch.loop->body));
  });
}

}  // namespace

LoopIterations most_iterations(const Plan& plan) {
  LoopIterations iterations;
  add_most(plan.launches, 1, iterations);
  return iterations;
}

bool has_open_loops(const Plan& plan) { return has_open_loops(plan.launches); }

PlanWork plan_work(const Plan& plan, const MachinePeaks& peaks, const LoopIterations& made) {
  PlanWork work;
  visit_nodes(plan, [&](const Level& level, const Node& node) {
    const double times = level.loop < 0 ? 1 : made.at(static_cast<size_t>(level.loop));
    const Cost cost = node_cost(*level.graph, node);
    work.flops += times * cost.flops;
    work.bytes += times * cost.bytes;
    work.roofline_seconds += times * roofline_seconds(*level.graph, node, peaks);
  });
  work.roofline_seconds = seconds_with_host_copies(plan, peaks, work.roofline_seconds);
  return work;
}

std::vector<LoopFlops> flops_by_loop(const Plan& plan) {
  std::vector<LoopFlops> parts;
  visit_nodes(plan, [&](const Level& level, const Node& node) {
    if (parts.empty() || parts.back().loop != level.loop) parts.push_back({.loop = level.loop});
    parts.back().flops += node_cost(*level.graph, node).flops;
  });
  return parts;
}

}  // namespace fullbore
