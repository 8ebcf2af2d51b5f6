// What a profile says: its table, its JSON and its timeline.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fullbore/base/text.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/step_profile.h"
#include "fullbore/plan/timeline.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

// The middle is left out: the end of a kernel's description is its shape.
std::string shortened(const std::string& text, int columns) {
  if (columns <= 0 || text.size() <= static_cast<size_t>(columns)) return text;
  const auto room = static_cast<size_t>(std::max(columns - 3, 0));
  const size_t last_word = text.size() - std::min(text.rfind(' ') + 1, text.size());
  const size_t tail = last_word <= room * 2 / 3 ? last_word : room / 2;
  return text.substr(0, room - tail) + "..." + text.substr(text.size() - tail);
}

// "example:33" of "models/example.cpp:33": enough where there is little room.
std::string short_location(const std::string& location) {
  const std::string name = location.substr(location.rfind('/') + 1);
  const size_t dot = std::min(name.find('.'), name.size());
  return name.substr(0, dot) + name.substr(std::min(name.find(':'), name.size()));
}

// A fused kernel's list of ops is long, and those that only repeat elements tell least; the vector
// unit of matmuls is the machine's.
std::string kernel_cell(const std::string& kernel, int columns) {
  if (columns <= 0 || kernel.size() <= static_cast<size_t>(columns)) return kernel;
  std::string text = replace_all(kernel, "broadcast_to,", "");
  for (const char* unit : {" avx512", " avx2", " baseline"}) text = replace_all(text, unit, "");
  return shortened(text, columns);
}

// The decimal is left out where there is no room for it.
std::string fitted(double value, size_t columns) {
  const std::string text = fmt::format("{:.1f}", value);
  return text.size() <= columns ? text : fmt::format("{:.0f}", value);
}

constexpr const char* kOccupancyLegend =
    "occ: threads that a multiprocessor holds at once, % of the most it can; fewer\n"
    "for registers (r), shared memory (s) or the size of blocks (b)\n";

std::string_view limit_name(OccupancyLimit limit) {
  switch (limit) {
    case OccupancyLimit::registers: return "registers";
    case OccupancyLimit::shared_memory: return "shared memory";
    case OccupancyLimit::block_size: return "block size";
    case OccupancyLimit::none: break;
  }
  return "";
}

// " 75r ", as wide where there is none.
std::string occupancy_cell(const std::optional<Occupancy>& occupancy) {
  if (!occupancy) return "     ";
  const std::string_view name = limit_name(occupancy->limit);
  return fmt::format("{:3.0f}{} ", 100 * occupancy->share, name.empty() ? ' ' : name.front());
}

Json occupancy_json(const Occupancy& occupancy) {
  const std::string_view name = limit_name(occupancy.limit);
  return {{"share", occupancy.share},         {"limit", name.empty() ? Json() : Json(name)},
          {"blocks", occupancy.blocks},       {"block_threads", occupancy.block_threads},
          {"registers", occupancy.registers}, {"shared_bytes", occupancy.shared_bytes}};
}

bool is_whole(double value) { return value == std::round(value); }

// A kernel of one shape among several runs in some steps only.
std::string launches_text(double launches) {
  return is_whole(launches) || launches >= 100 ? fmt::format("{:.0f}", launches)
                                               : fmt::format("{:.1f}", launches);
}

Json launches_json(double launches) {
  return is_whole(launches) ? Json(static_cast<int64_t>(launches)) : Json(launches);
}

// Of one worker: the others make the same launches.
void trace_arena(TraceFile& trace, const std::vector<int64_t>& live,
                 std::span<const LaneEvents> workers) {
  int64_t last = -1;
  if (workers.empty()) return;
  for (const LaunchEvent& event : workers.front().events) {
    const auto launch = static_cast<size_t>(event.launch);
    if (live[launch] == last) continue;
    last = live[launch];
    trace.add_bytes("live bytes of the arena", event.begin_ns, last);
  }
}

std::string shape_table(const StepProfile& profile) {
  std::string text = fmt::format("{:<16}{:>8}{:>8}{:>14}{:>14}\n", "batch", "steps", "share",
                                 "median ms", "roofline ms");
  for (const StepProfile::ShapeTimes& shape : profile.shapes())
    text += fmt::format("{:<16}{:>8}{:>8}{:>14}{:>14.3f}\n", shape.batch, shape.steps,
                        percent(shape.share),
                        shape.steps > 0 ? fmt::format("{:.3f}", shape.step_seconds * 1e3) : "-",
                        shape.roofline_seconds * 1e3);
  return text + '\n';
}

}  // namespace

Json to_json(const StepProfile& profile) {
  Json kernels = Json::array();
  const double step = profile.step_seconds();
  for (const KernelProfile& kernel : profile.kernels()) {
    kernels.push_back({{"kernel", kernel.kernel},
                       {"location", kernel.location},
                       {"scope", kernel.scope},
                       {"launches", launches_json(kernel.launches)},
                       {"seconds", kernel.seconds},
                       {"share", rate(kernel.seconds, step)},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"roofline_seconds", kernel.roofline_seconds}});
    if (kernel.occupancy) kernels.back()["occupancy"] = occupancy_json(*kernel.occupancy);
  }
  Json shapes = Json::array();
  for (const StepProfile::ShapeTimes& shape : profile.shapes())
    shapes.push_back({{"batch", shape.batch},
                      {"steps", shape.steps},
                      {"median_seconds", shape.steps > 0 ? Json(shape.step_seconds) : Json()},
                      {"share", shape.share},
                      {"roofline_seconds", shape.roofline_seconds}});
  return {{"steps", profile.steps()},
          {"seconds_per_step", step},
          {"idle_seconds", profile.idle_seconds()},
          {"roofline_seconds", profile.roofline_seconds()},
          {"loops_at_most", profile.at_most()},
          {"unrecorded_launches", profile.dropped()},
          {"shapes", shapes},
          {"kernels", kernels}};
}

std::string text(const StepProfile& profile, size_t most, int columns) {
  const double step = profile.step_seconds();
  const std::vector<KernelProfile> kernels = profile.kernels();
  const bool mixture = profile.shapes().size() > 1;
  std::string out = fmt::format(
      "{:.3f} ms per step, {} of {}; roofline {:.3f} ms, {} of it reached\n", step * 1e3,
      mixture ? "medians" : "median", profile.steps(), profile.roofline_seconds() * 1e3,
      percent(rate(profile.roofline_seconds(), step)));
  if (mixture) out += shape_table(profile);
  const bool has_occupancies =
      std::ranges::any_of(kernels, [](const auto& each) { return each.occupancy.has_value(); });
  out += fmt::format("      us share    n   GF/s  GB/s peak {}line          kernel\n",
                     has_occupancies ? " occ " : "");
  double rest = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelProfile& kernel = kernels[i];
    if (i >= most) {
      rest += kernel.seconds;
      continue;
    }
    const std::string numbers =
        fmt::format("{:8.1f} {:>5} {:>4} {:>6} {:>5} {:3.0f}% {}{:<13} ", kernel.seconds * 1e6,
                    percent(rate(kernel.seconds, step)), launches_text(kernel.launches),
                    fitted(rate(kernel.flops, kernel.seconds) / 1e9, 6),
                    fitted(rate(kernel.bytes, kernel.seconds) / 1e9, 5),
                    100 * rate(kernel.roofline_seconds, kernel.seconds),
                    has_occupancies ? occupancy_cell(kernel.occupancy) : "",
                    shortened(short_location(kernel.location), 13));
    const int room = columns <= 0 ? 0 : std::max(12, columns - static_cast<int>(numbers.size()));
    out += numbers + kernel_cell(kernel.kernel, room) + '\n';
  }
  const auto remainder = [&](double seconds, const std::string& what) {
    out += fmt::format("{:8.1f} {:>5}  {}\n", seconds * 1e6, percent(rate(seconds, step)), what);
  };
  if (kernels.size() > most) remainder(rest, fmt::format("{} kernels more", kernels.size() - most));
  remainder(profile.idle_seconds(), "between launches");
  if (has_occupancies) out += kOccupancyLegend;
  if (profile.at_most()) {
    out += "the roofline counts loops to their ends: the device does not say how far they went\n";
  } else if (profile.roofline_seconds() > step) {
    out += kAboveRoofline;
  } else if (std::ranges::any_of(kernels, [](const KernelProfile& kernel) {
               return kernel.roofline_seconds > 1.005 * kernel.seconds;
             })) {
    out += "peak above 100 %: operands came from caches, or a mask hid what is counted\n";
  }
  if (profile.dropped() > 0)
    out += fmt::format("{} launches were not recorded: loops of more than a million launches\n",
                       profile.dropped());
  return out;
}

void trace_step(TraceFile& trace, const Plan& plan, std::span<const LaunchEntry> list,
                std::span<const LaneEvents> workers) {
  std::vector<std::string> names;
  for (const LaunchEntry& launch : list) names.push_back(launch_text(plan, launch));
  trace_arena(trace, live_bytes_by_entry(plan), workers);
  for (size_t worker = 0; worker < workers.size(); ++worker)
    for (const LaunchEvent& event : workers[worker].events) {
      const auto launch = static_cast<size_t>(event.launch);
      Json arguments = {{"launch", event.launch}};
      if (const Node* const node = list[launch].node()) {
        if (!node->location.empty()) arguments["line"] = node->location;
        if (!node->scope.empty()) arguments["scope"] = node->scope;
      }
      trace.add(names[launch], static_cast<int>(worker), event.begin_ns, event.end_ns, arguments);
    }
}

}  // namespace fullbore
