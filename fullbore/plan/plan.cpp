#include "fullbore/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/plan/planner.h"

namespace fullbore {
namespace {

double roofline(const Graph& graph, const MachinePeaks& peaks) {
  double seconds = 0;
  for (const Node& node : graph.nodes()) seconds += roofline_seconds(graph, node, peaks);
  return seconds;
}

// Of a kernel's body each node has its own peak.
double arithmetic_seconds(const Graph& graph, const Node& node, const MachinePeaks& peaks) {
  if (node.body) {
    double seconds = 0;
    for (const Node& inner : node.body->nodes())
      seconds += arithmetic_seconds(*node.body, inner, peaks);
    return seconds;
  }
  const DType dtype = node.op->is(Tag::contraction) ? graph.type(node.inputs[0]).dtype : DType::f32;
  const bool tf32 = node.attributes.get_or("tf32", false);
  return node_cost(graph, node).flops / peak_flops(dtype, peaks, tf32);
}

void print_launches(const Plan& plan, const Graph& graph,
                    const std::vector<PlannedLaunch>& launches, int depth, std::string& text) {
  const std::string margin(static_cast<size_t>(depth) * 2, ' ');
  const auto buffers = [&](const PlannedLaunch& launch) {
    std::string list;
    for (int buffer : launch.buffers) list += fmt::format(" b{}", buffer);
    return list;
  };
  for (const PlannedLaunch& launch : launches) {
    const std::string indent = margin + (launch.waits ? "" : "& ");
    switch (launch.kind) {
      case PlannedLaunch::Kind::copy:
        text += fmt::format("{}copy{}{}{}\n", indent, host_end_text(plan, launch), buffers(launch),
                            launch.behind ? ", beside the next replay" : "");
        break;
      case PlannedLaunch::Kind::kernel:
        text += fmt::format("{}{}{}\n", indent,
                            plan.kernels[static_cast<size_t>(launch.kernel)]->description(),
                            buffers(launch));
        break;
      case PlannedLaunch::Kind::loop: {
        const LoopPlan& loop = *launch.loop;
        text +=
            fmt::format("{}loop of {}{} iterations{}{}\n", indent, loop.stop >= 0 ? "at most " : "",
                        loop.iterations, loop.reverse ? ", reversed" : "",
                        loop.memory >= 0 ? ", side by side" : "");
        const Node& node = graph.nodes()[static_cast<size_t>(launch.node)];
        print_launches(plan, *node.body, loop.body, depth + 1, text);
        for (const LoopPlan::Carry& carry : loop.carries)
          text += fmt::format("{}  {} b{} b{}\n", margin, carry.exchanged ? "exchange" : "carry",
                              carry.from, carry.to);
        for (const int cleared : loop.cleared)
          text += fmt::format("{}  clear rows not made b{}\n", margin, cleared);
        break;
      }
    }
  }
}

}  // namespace

Plan make_plan(Graph graph, Compiler& compiler, const PlanOptions& options) {
  const CheckContext context("planning '" + graph.name() + "'");
  Plan plan;
  plan.graph = std::move(graph);
  plan.alignment = options.alignment;
  Planner(plan, compiler, options).plan_graph();
  const Cost cost = graph_cost(plan.graph);
  plan.flops = cost.flops;
  plan.bytes_moved = cost.bytes;
  return plan;
}

int most_thread_groups(const Plan& plan) {
  int most = 1;
  for (const Buffer& buffer : plan.buffers) most = std::max(most, buffer.thread_groups);
  return most;
}

int64_t shared_peak_bytes(std::span<const Plan* const> plans) {
  int64_t arena = 0;
  int64_t own = 0;
  const Plan* most = nullptr;  // of State
  std::map<std::string, int64_t> copies;
  for (const Plan* plan : plans) {
    for (const Graph::Input& input : plan->graph.inputs())
      if (input.role == Role::derived)
        copies[input.name] = aligned_bytes(plan->graph.type(input.value).bytes(), plan->alignment);
    arena = std::max(arena, plan->arena_bytes);
    if (most == nullptr || plan->state_bytes > most->state_bytes) most = plan;
    own += plan->peak_bytes() - plan->arena_bytes - plan->state_bytes - plan->derived_bytes;
  }
  for (const auto& [name, bytes] : copies) own += bytes;
  // What other programs have of State beside that.
  std::map<std::string, int64_t> further;
  for (const Plan* plan : plans)
    for (const Graph::Input& input : plan->graph.inputs())
      if (is_state(input.role) && !(input.role == Role::moment && plan->host_bytes > 0))
        further[input.name] = aligned_bytes(plan->graph.type(input.value).bytes(), plan->alignment);
  if (most != nullptr)
    for (const Graph::Input& input : most->graph.inputs()) further.erase(input.name);
  for (const auto& [name, bytes] : further) own += bytes;
  return arena + (most != nullptr ? most->state_bytes : 0) + own;
}

double peak_flops(DType operands, const MachinePeaks& peaks, bool tf32) {
  if (operands == DType::f32 && tf32 && peaks.tf32_flops > 0) return peaks.tf32_flops;
  return operands == DType::bf16 && peaks.bf16_flops > 0 ? peaks.bf16_flops : peaks.fp32_flops;
}

double roofline_seconds(const Plan& plan, const MachinePeaks& peaks) {
  return seconds_with_host_copies(plan, peaks, roofline(plan.graph, peaks));
}

double seconds_with_host_copies(const Plan& plan, const MachinePeaks& peaks, double seconds) {
  if (peaks.host_bytes_per_second <= 0) return seconds;
  const auto node_seconds = [&](const PlannedLaunch& launch) {
    return launch.node < 0
               ? 0
               : roofline_seconds(plan.graph, plan.graph.nodes()[static_cast<size_t>(launch.node)],
                                  peaks);
  };
  // What writes have beside them: launches behind the first of them, and those of the next replay that do not wait.
  double beside = 0;
  const auto end = plan.launches.end();
  if (std::ranges::any_of(plan.launches, &PlannedLaunch::behind))
    for (size_t i = 0; i < plan.first_waiting; ++i) beside += node_seconds(plan.launches[i]);
  // Those at the end of the list are made by launches before it.
  const auto made = [&](const PlannedLaunch& write) {
    return std::find_if(plan.launches.begin(), end, [&](const PlannedLaunch& launch) {
      return launch.node >= 0 &&
             std::ranges::find(launch.buffers, write.buffers[0]) != launch.buffers.end();
    });
  };
  auto first = end;
  for (const PlannedLaunch& launch : plan.launches)
    if (host_end(plan, launch) == HostEnd::to) first = std::min(first, made(launch));
  for (auto each = first; each != end; ++each) beside += each == first ? 0 : node_seconds(*each);
  const HostTraffic traffic = host_traffic(plan);
  const double read = static_cast<double>(traffic.read) / peaks.host_bytes_per_second;
  const double written = static_cast<double>(traffic.written) / peaks.host_bytes_per_second;
  return std::max({seconds, read, seconds - beside + written});
}

HostEnd host_end(const Plan& plan, const PlannedLaunch& launch) {
  if (launch.kind != PlannedLaunch::Kind::copy) return HostEnd::none;
  if (plan.buffers[static_cast<size_t>(launch.buffers[0])].in_host) return HostEnd::from;
  return plan.buffers[static_cast<size_t>(launch.buffers[1])].in_host ? HostEnd::to : HostEnd::none;
}

std::string_view host_end_text(const Plan& plan, const PlannedLaunch& launch) {
  switch (host_end(plan, launch)) {
    case HostEnd::none: return "";
    case HostEnd::from: return " from host";
    case HostEnd::to: return " to host";
  }
  FB_CHECK(false, "a copy with {} ends", static_cast<int>(host_end(plan, launch)));
}

HostTraffic host_traffic(const Plan& plan) {
  HostTraffic traffic;
  for (const PlannedLaunch& launch : plan.launches) {
    const HostEnd end = host_end(plan, launch);
    if (end == HostEnd::none) continue;
    (end == HostEnd::from ? traffic.read : traffic.written) +=
        plan.buffers[static_cast<size_t>(launch.buffers[1])].bytes;
  }
  return traffic;
}

double roofline_seconds(const Graph& graph, const Node& node, const MachinePeaks& peaks) {
  if (node.op->is(Tag::identity) || node.op->is(Tag::source)) return 0;
  if (is_loop(node))
    return static_cast<double>(LoopShape(node).iterations) * roofline(*node.body, peaks);
  return std::max(arithmetic_seconds(graph, node, peaks),
                  node_cost(graph, node).bytes / peaks.bytes_per_second);
}

std::string_view space_name(Space space) {
  switch (space) {
    case Space::arena: return "arena";
    case Space::state: return "state";
    case Space::batch: return "batch";
    case Space::constant: return "constant";
    case Space::result: return "result";
    case Space::slice: return "slice";
    case Space::thread_group: return "thread group";
  }
  FB_CHECK(false, "space {}", static_cast<int>(space));
}

std::string plan_text(const Plan& plan) {
  std::string text = fmt::format(
      "plan \"{}\": {} kernels, {} buffers\n  arena {}, state {}, copies {}, batch {}, results {}, "
      "constants {}: peak {} bytes\n",
      plan.graph.name(), plan.kernels.size(), plan.buffers.size(), plan.arena_bytes,
      plan.state_bytes, plan.derived_bytes, plan.batch_bytes, plan.result_bytes,
      plan.constants.size(), plan.peak_bytes());
  if (plan.host_bytes > 0) {
    const HostTraffic traffic = host_traffic(plan);
    text += fmt::format("  State in the host's memory {}, of which {} are read and {} written",
                        plan.host_bytes, traffic.read, traffic.written);
    text +=
        plan.first_waiting > 0
            ? fmt::format("; launch {} is the first behind the replay before\n", plan.first_waiting)
            : "\n";
  }
  print_launches(plan, plan.graph, plan.launches, 1, text);
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    text +=
        fmt::format("  b{} {}{} {}{} {}\n", i, space_name(buffer.space),
                    buffer.in_host ? " in host" : "", bytes_text(static_cast<double>(buffer.bytes)),
                    buffer.space == Space::arena || buffer.space == Space::thread_group
                        ? fmt::format(" at {}", buffer.offset)
                        : "",
                    buffer.what);
  }
  return text;
}

}  // namespace fullbore
