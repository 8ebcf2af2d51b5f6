#include "fullbore/plan/launch_list.h"

#include <fmt/format.h>

namespace fullbore {
namespace {

void append(const Plan& plan, const Graph& graph, const std::vector<PlannedLaunch>& launches,
            const LaunchEntry& around, std::vector<LaunchEntry>& list) {
  for (const PlannedLaunch& launch : launches) {
    LaunchEntry inner{&launch, &graph, around.parent, around.times, around.thread_groups};
    list.push_back(inner);
    if (launch.kind != PlannedLaunch::Kind::loop) continue;
    inner.parent = static_cast<int>(list.size()) - 1;
    inner.times *= launch.loop->iterations;
    inner.thread_groups *= thread_group_count(plan, *launch.loop);
    append(plan, *inner.node()->body, launch.loop->body, inner, list);
  }
}

double bytes_of(const Plan& plan, int buffer) {
  return static_cast<double>(plan.buffers[static_cast<size_t>(buffer)].bytes);
}

}  // namespace

const Node* LaunchEntry::node() const {
  return launch->node < 0 ? nullptr : &graph->nodes()[static_cast<size_t>(launch->node)];
}

std::vector<LaunchEntry> launch_list(const Plan& plan) {
  std::vector<LaunchEntry> list;
  append(plan, plan.graph, plan.launches, {}, list);
  return list;
}

std::string launch_text(const Plan& plan, const LaunchEntry& entry) {
  const PlannedLaunch& launch = *entry.launch;
  switch (launch.kind) {
    case PlannedLaunch::Kind::kernel:
      return plan.kernels[static_cast<size_t>(launch.kernel)]->description();
    case PlannedLaunch::Kind::copy:
      return fmt::format("copy {} bytes{}",
                         plan.buffers[static_cast<size_t>(launch.buffers[1])].bytes,
                         host_end_text(plan, launch));
    case PlannedLaunch::Kind::loop:
      return fmt::format("loop of {}{} iterations", launch.loop->stop >= 0 ? "at most " : "",
                         launch.loop->iterations);
  }
  return "";
}

Cost launch_cost(const Plan& plan, const LaunchEntry& entry, std::optional<double> iterations) {
  const PlannedLaunch& launch = *entry.launch;
  if (launch.kind == PlannedLaunch::Kind::kernel) return node_cost(*entry.graph, *entry.node());
  double moved = 0;
  if (host_end(plan, launch) != HostEnd::none)  // one of its ends alone is the device's
    return {.flops = 0, .bytes = bytes_of(plan, launch.buffers[1])};
  if (launch.kind == PlannedLaunch::Kind::copy) {
    moved = bytes_of(plan, launch.buffers[1]);
  } else {
    const double times = iterations.value_or(static_cast<double>(launch.loop->iterations));
    for (const LoopPlan::Carry& carry : launch.loop->carries)
      moved += (carry.exchanged ? 1 : times) * bytes_of(plan, carry.to);
  }
  return {.flops = 0, .bytes = 2 * moved};
}

double launch_roofline_seconds(const Plan& plan, const LaunchEntry& entry,
                               const MachinePeaks& peaks, std::optional<double> iterations) {
  if (entry.launch->kind == PlannedLaunch::Kind::kernel)
    return roofline_seconds(*entry.graph, *entry.node(), peaks);
  const double bytes = launch_cost(plan, entry, iterations).bytes;
  if (host_end(plan, *entry.launch) != HostEnd::none && peaks.host_bytes_per_second > 0)
    return bytes / peaks.host_bytes_per_second;
  return bytes / peaks.bytes_per_second;
}

}  // namespace fullbore
