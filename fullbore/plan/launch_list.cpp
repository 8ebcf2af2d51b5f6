#include "fullbore/plan/launch_list.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

void append(const Plan& plan, const Graph& graph, const std::vector<Step>& steps,
            const PlannedLaunch& around, std::vector<PlannedLaunch>& list) {
  for (const Step& step : steps) {
    PlannedLaunch inner{&step, &graph, around.parent, around.times, around.thread_groups};
    list.push_back(inner);
    if (step.kind != Step::Kind::loop) continue;
    inner.parent = static_cast<int>(list.size()) - 1;
    inner.times *= step.loop->iterations;
    inner.thread_groups *= thread_group_count(plan, *step.loop);
    append(plan, *inner.node()->body, step.loop->body, inner, list);
  }
}

int64_t bytes_of(const Plan& plan, int buffer) {
  return plan.buffers[static_cast<size_t>(buffer)].bytes;
}

}  // namespace

const Node* PlannedLaunch::node() const {
  return step->node < 0 ? nullptr : &graph->nodes()[static_cast<size_t>(step->node)];
}

std::vector<PlannedLaunch> launch_list(const Plan& plan) {
  std::vector<PlannedLaunch> list;
  append(plan, plan.graph, plan.steps, {}, list);
  return list;
}

std::string launch_text(const Plan& plan, const PlannedLaunch& launch) {
  const Step& step = *launch.step;
  switch (step.kind) {
    case Step::Kind::kernel: return plan.kernels[static_cast<size_t>(step.kernel)]->description();
    case Step::Kind::copy: return fmt::format("copy {} bytes", bytes_of(plan, step.buffers[1]));
    case Step::Kind::loop:
      return fmt::format("loop of {}{} iterations", step.loop->stop >= 0 ? "at most " : "",
                         step.loop->iterations);
  }
  return "";
}

Cost launch_cost(const Plan& plan, const PlannedLaunch& launch) {
  const Step& step = *launch.step;
  if (step.kind == Step::Kind::kernel) return node_cost(*launch.graph, *launch.node());
  int64_t moved = 0;
  if (step.kind == Step::Kind::copy) {
    moved = bytes_of(plan, step.buffers[1]);
  } else {
    for (const LoopPlan::Carry& carry : step.loop->carries)
      moved += step.loop->iterations * bytes_of(plan, carry.to);
  }
  return {.flops = 0, .bytes = 2.0 * static_cast<double>(moved)};
}

double launch_roofline_seconds(const Plan& plan, const PlannedLaunch& launch,
                               const MachinePeaks& peaks) {
  if (launch.step->kind == Step::Kind::kernel)
    return roofline_seconds(*launch.graph, *launch.node(), peaks);
  return launch_cost(plan, launch).bytes / peaks.bytes_per_second;
}

}  // namespace fullbore
