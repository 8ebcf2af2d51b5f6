#include "fullbore/plan/report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

class Counter {
 public:
  Counter(const Plan& plan, const MachinePeaks& peaks, const LoopIterations& made)
      : plan_(plan), peaks_(peaks), made_(made) {}

  /// `times`: how often these launches are made.
  void count(const Graph& graph, const std::vector<PlannedLaunch>& launches, double times) {
    for (const PlannedLaunch& launch : launches) {
      const size_t entry = next_++;
      if (launch.waits && launch.kind != PlannedLaunch::Kind::loop) levels_ += times;
      if (launch.kind == PlannedLaunch::Kind::loop) {
        const Node& node = graph.nodes()[static_cast<size_t>(launch.node)];
        count(*node.body, launch.loop->body, made_[entry]);
        for (const LoopPlan::Carry& carry : launch.loop->carries)
          count_copy(carry.from, carry.exchanged ? times : made_[entry]);
      } else if (launch.kind == PlannedLaunch::Kind::copy) {
        if (host_end(plan_, launch) != HostEnd::none)
          count_host_copy(launch, times);
        else
          count_copy(launch.buffers[0], times);
      } else {
        const Node& node = graph.nodes()[static_cast<size_t>(launch.node)];
        const Cost cost = node_cost(graph, node);
        add(std::string(node.op->name), times, cost.flops, cost.bytes,
            roofline_seconds(graph, node, peaks_));
      }
    }
  }

  int64_t levels() const { return std::llround(levels_); }

  std::vector<LaunchKind> kinds() const {
    std::vector<LaunchKind> list;
    for (const auto& [name, counted] : kinds_) {
      list.push_back(counted.kind);
      list.back().launches = std::llround(counted.launches);
    }
    std::stable_sort(list.begin(), list.end(), [](const LaunchKind& a, const LaunchKind& b) {
      return a.roofline_seconds > b.roofline_seconds;
    });
    return list;
  }

 private:
  struct Counted {
    LaunchKind kind;
    double launches = 0;
  };
  void count_copy(int source, double times) {
    const auto bytes = 2.0 * static_cast<double>(plan_.buffers[static_cast<size_t>(source)].bytes);
    add("copy", times, 0, bytes, bytes / peaks_.bytes_per_second);
  }

  // Time is that of the way between both memories, where it is known.
  void count_host_copy(const PlannedLaunch& launch, double times) {
    const auto bytes =
        static_cast<double>(plan_.buffers[static_cast<size_t>(launch.buffers[1])].bytes);
    const double rate =
        peaks_.host_bytes_per_second > 0 ? peaks_.host_bytes_per_second : peaks_.bytes_per_second;
    add(fmt::format("copy{}", host_end_text(plan_, launch)), times, 0, bytes, bytes / rate);
  }

  void add(const std::string& name, double times, double flops, double bytes, double seconds) {
    auto& [kind, launches] = kinds_[name];
    kind.name = name;
    launches += times;
    kind.flops += times * flops;
    kind.bytes += times * bytes;
    kind.roofline_seconds += times * seconds;
  }

  const Plan& plan_;
  const MachinePeaks& peaks_;
  const LoopIterations& made_;
  size_t next_ = 0;  ///< entry of the launch list
  std::map<std::string, Counted> kinds_;
  double levels_ = 0;
};

std::vector<BufferUse> largest_buffers(const Plan& plan, int count) {
  std::vector<const Buffer*> order;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.space != Space::slice && buffer.thread_groups == 0) order.push_back(&buffer);
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  if (order.size() > static_cast<size_t>(count)) order.resize(static_cast<size_t>(count));
  std::vector<BufferUse> uses;
  for (const Buffer* buffer : order)
    uses.push_back({std::string(space_name(buffer->space)), buffer->bytes, buffer->what});
  return uses;
}

}  // namespace

PlanReport report_plan(const Plan& plan, const MachinePeaks& peaks, const LoopIterations& made,
                       int buffers) {
  const bool open = has_open_loops(plan);
  const LoopIterations iterations = made.empty() ? most_iterations(plan) : made;
  PlanReport report;
  report.name = plan.graph.name();
  report.at_most = open && made.empty();
  report.flops = plan.flops;
  report.bytes_moved = plan.bytes_moved;
  report.roofline_seconds = roofline_seconds(plan, peaks);
  if (open && !made.empty()) {
    const PlanWork work = plan_work(plan, peaks, made);
    report.flops = work.flops;
    report.bytes_moved = work.bytes;
    report.roofline_seconds = work.roofline_seconds;
  }
  report.peak_bytes = plan.peak_bytes();
  report.state_bytes = plan.state_bytes;
  report.host_bytes = plan.host_bytes;
  report.host_traffic = host_traffic(plan);
  report.derived_bytes = plan.derived_bytes;
  report.arena_bytes = plan.arena_bytes;
  report.batch_bytes = plan.batch_bytes;
  report.result_bytes = plan.result_bytes;
  report.constant_bytes = static_cast<int64_t>(plan.constants.size());
  Counter counter(plan, peaks, iterations);
  counter.count(plan.graph, plan.launches, 1);
  report.kinds = counter.kinds();
  report.launch_levels = counter.levels();
  for (const LaunchKind& kind : report.kinds) report.launches += kind.launches;
  report.largest = largest_buffers(plan, buffers);
  return report;
}

nlohmann::ordered_json to_json(const PlanReport& report) {
  auto kinds = nlohmann::ordered_json::array();
  for (const LaunchKind& kind : report.kinds)
    kinds.push_back({{"name", kind.name},
                     {"launches", kind.launches},
                     {"flops", kind.flops},
                     {"bytes", kind.bytes},
                     {"roofline_seconds", kind.roofline_seconds}});
  auto largest = nlohmann::ordered_json::array();
  for (const BufferUse& use : report.largest)
    largest.push_back({{"space", use.space}, {"bytes", use.bytes}, {"what", use.what}});
  return {{"name", report.name},
          {"launches", report.launches},
          {"launch_levels", report.launch_levels},
          {"loops_at_most", report.at_most},
          {"flops", report.flops},
          {"bytes_moved", report.bytes_moved},
          {"roofline_seconds", report.roofline_seconds},
          {"peak_bytes", report.peak_bytes},
          {"state_bytes", report.state_bytes},
          {"host_bytes", report.host_bytes},
          {"host_bytes_read", report.host_traffic.read},
          {"host_bytes_written", report.host_traffic.written},
          {"derived_bytes", report.derived_bytes},
          {"arena_bytes", report.arena_bytes},
          {"batch_bytes", report.batch_bytes},
          {"result_bytes", report.result_bytes},
          {"constant_bytes", report.constant_bytes},
          {"launches_by_kind", kinds},
          {"largest_buffers", largest}};
}

std::string text(const PlanReport& report) {
  std::string out;
  const auto space = [&](const char* name, int64_t bytes) {
    out +=
        fmt::format("    {:<10} {:>15}  {}\n", name, bytes, bytes_text(static_cast<double>(bytes)));
  };
  out += fmt::format("  arithmetic   {}FLOP{}\n", count_text(report.flops),
                     report.at_most ? ", were all loops to run to their ends" : "");
  out +=
      fmt::format("  traffic      {}B, every operand moved once\n", count_text(report.bytes_moved));
  out += fmt::format("  roofline     {:.3f} ms at best on this machine\n",
                     report.roofline_seconds * 1e3);
  out += fmt::format("  levels       {} of concurrent launches\n", report.launch_levels);
  out += "  memory, bytes\n";
  space("peak", report.peak_bytes);
  space("state", report.state_bytes);
  space("copies", report.derived_bytes);
  space("arena", report.arena_bytes);
  space("batch", report.batch_bytes);
  space("results", report.result_bytes);
  space("constants", report.constant_bytes);
  if (report.host_bytes > 0) {
    out += "  pinned memory of the host, bytes\n";
    space("moments", report.host_bytes);
    space("read", report.host_traffic.read);
    space("written", report.host_traffic.written);
  }
  out += fmt::format("  {} launches by kind    count        FLOP       bytes  roofline\n",
                     report.launches);
  for (const LaunchKind& kind : report.kinds)
    out += fmt::format("    {:<22} {:>6} {:>11} {:>11} {:>6.3f} ms\n", kind.name, kind.launches,
                       count_text(kind.flops), count_text(kind.bytes), kind.roofline_seconds * 1e3);
  out += "  largest buffers\n";
  for (const BufferUse& use : report.largest)
    out += fmt::format("    {:>10}  {:<9} {}\n", bytes_text(static_cast<double>(use.bytes)),
                       use.space, use.what);
  return out;
}

}  // namespace fullbore
