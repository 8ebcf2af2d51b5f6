#include "fullbore/monitor/step_profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fullbore/base/text.h"
#include "fullbore/monitor/launch_times.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/monitor/sample_statistics.h"
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

StepProfile::StepProfile(const Plan& plan, const MachinePeaks& peaks)
    : StepProfile(std::vector<ProfiledShape>{{"", &plan}}, peaks) {}

StepProfile::StepProfile(const std::vector<ProfiledShape>& shapes, const MachinePeaks& peaks)
    : peaks_(peaks) {
  for (const ProfiledShape& shape : shapes) {
    ShapeProfile profile{.batch = shape.batch,
                         .plan = shape.plan,
                         .list = launch_list(*shape.plan),
                         .times = {},
                         .step_seconds = {}};
    profile.times.resize(profile.list.size());
    shapes_.push_back(std::move(profile));
  }
}

void StepProfile::add(std::span<const LaneEvents> workers, double step_seconds, size_t shape,
                      const LoopIterations& made) {
  for (const LaneEvents& worker : workers) dropped_ += worker.dropped;
  ShapeProfile& profile = shapes_[shape];
  const std::vector<LaunchTime> times = launch_times(workers, profile.list);
  for (size_t i = 0; i < times.size(); ++i) {
    profile.times[i].seconds.push_back(times[i].seconds);
    profile.times[i].launches += times[i].launches;
  }
  profile.step_seconds.push_back(step_seconds);
  const LoopIterations iterations = made.empty() ? most_iterations(*profile.plan) : made;
  profile.at_most |= made.empty() && has_open_loops(*profile.plan);
  profile.iterations.resize(iterations.size(), 0);
  for (size_t i = 0; i < iterations.size(); ++i) profile.iterations[i] += iterations[i];
}

LoopIterations StepProfile::ShapeProfile::mean_iterations() const {
  LoopIterations mean = iterations;
  for (double& each : mean) each /= static_cast<double>(step_seconds.size());
  return mean.empty() ? most_iterations(*plan) : mean;
}

double StepProfile::roofline_of(const ShapeProfile& shape) const {
  if (!has_open_loops(*shape.plan)) return fullbore::roofline_seconds(*shape.plan, peaks_);
  return plan_work(*shape.plan, peaks_, shape.mean_iterations()).roofline_seconds;
}

bool StepProfile::at_most() const { return std::ranges::any_of(shapes_, &ShapeProfile::at_most); }

void StepProfile::set_peaks(const MachinePeaks& peaks) { peaks_ = peaks; }

double StepProfile::ShapeProfile::median_step() const {
  return step_seconds.empty() ? 0 : median(step_seconds);
}

double StepProfile::ShapeProfile::idle_seconds() const {
  if (step_seconds.empty()) return 0;
  double launched = 0;
  for (const LaunchTimes& each : times) launched += median(each.seconds);
  return std::max(0.0, median_step() - launched);
}

int64_t StepProfile::steps() const {
  size_t steps = 0;
  for (const ShapeProfile& shape : shapes_) steps += shape.step_seconds.size();
  return static_cast<int64_t>(steps);
}

double StepProfile::weight(const ShapeProfile& shape) const {
  return static_cast<double>(shape.step_seconds.size()) / static_cast<double>(steps());
}

double StepProfile::step_seconds() const {
  double seconds = 0;
  for (const ShapeProfile& shape : shapes_) seconds += weight(shape) * shape.median_step();
  return seconds;
}

double StepProfile::idle_seconds() const {
  double seconds = 0;
  for (const ShapeProfile& shape : shapes_) seconds += weight(shape) * shape.idle_seconds();
  return seconds;
}

double StepProfile::roofline_seconds() const {
  double seconds = 0;
  for (const ShapeProfile& shape : shapes_) seconds += weight(shape) * roofline_of(shape);
  return seconds;
}

std::vector<StepProfile::ShapeTimes> StepProfile::shapes() const {
  std::vector<ShapeTimes> shapes;
  for (const ShapeProfile& shape : shapes_)
    shapes.push_back({.batch = shape.batch,
                      .steps = static_cast<int64_t>(shape.step_seconds.size()),
                      .step_seconds = shape.median_step(),
                      .roofline_seconds = roofline_of(shape),
                      .share = rate(weight(shape) * shape.median_step(), step_seconds())});
  return shapes;
}

void StepProfile::add_kernels(const ShapeProfile& shape, KernelGroups& groups) const {
  const LoopIterations iterations = shape.mean_iterations();
  for (size_t i = 0; i < shape.list.size(); ++i) {
    const LaunchEntry& launch = shape.list[i];
    if (shape.times[i].launches == 0) continue;
    const Node* const node = launch.node();
    const std::string location = node ? node->location : "";
    const std::string kernel = launch_text(*shape.plan, launch);
    KernelProfile& group = groups[{kernel, location}];
    if (group.launches == 0) {
      group.kernel = kernel;
      group.location = location;
      group.scope = node ? node->scope : "";
    }
    const auto total = static_cast<double>(shape.times[i].launches);
    const double launches = total / static_cast<double>(steps());
    // Of one launch of a loop: what it makes in a step is divided by how often it is begun.
    const double begun = total / static_cast<double>(shape.step_seconds.size());
    const double made = iterations[i] / begun;
    const Cost cost = launch_cost(*shape.plan, launch, made);
    group.launches += total;  // of all steps, until the end
    group.seconds += weight(shape) * median(shape.times[i].seconds);
    group.flops += launches * cost.flops;
    group.bytes += launches * cost.bytes;
    group.roofline_seconds += launches * launch_roofline_seconds(*shape.plan, launch, peaks_, made);
  }
}

std::vector<KernelProfile> StepProfile::kernels() const {
  KernelGroups groups;
  for (const ShapeProfile& shape : shapes_) add_kernels(shape, groups);
  std::vector<KernelProfile> kernels;
  for (auto& [key, group] : groups) {
    group.launches /= static_cast<double>(steps());
    kernels.push_back(std::move(group));
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return kernels;
}

Json to_json(const StepProfile& profile) {
  Json kernels = Json::array();
  const double step = profile.step_seconds();
  for (const KernelProfile& kernel : profile.kernels())
    kernels.push_back({{"kernel", kernel.kernel},
                       {"location", kernel.location},
                       {"scope", kernel.scope},
                       {"launches", launches_json(kernel.launches)},
                       {"seconds", kernel.seconds},
                       {"share", rate(kernel.seconds, step)},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"roofline_seconds", kernel.roofline_seconds}});
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
  out += "      us share    n   GF/s  GB/s peak line          kernel\n";
  double rest = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelProfile& kernel = kernels[i];
    if (i >= most) {
      rest += kernel.seconds;
      continue;
    }
    const std::string numbers = fmt::format(
        "{:8.1f} {:>5} {:>4} {:6.1f} {:5.1f} {:3.0f}% {:<13} ", kernel.seconds * 1e6,
        percent(rate(kernel.seconds, step)), launches_text(kernel.launches),
        rate(kernel.flops, kernel.seconds) / 1e9, rate(kernel.bytes, kernel.seconds) / 1e9,
        100 * rate(kernel.roofline_seconds, kernel.seconds),
        shortened(short_location(kernel.location), 13));
    const int room = columns <= 0 ? 0 : std::max(12, columns - static_cast<int>(numbers.size()));
    out += numbers + kernel_cell(kernel.kernel, room) + '\n';
  }
  const auto remainder = [&](double seconds, const std::string& what) {
    out += fmt::format("{:8.1f} {:>5}  {}\n", seconds * 1e6, percent(rate(seconds, step)), what);
  };
  if (kernels.size() > most) remainder(rest, fmt::format("{} kernels more", kernels.size() - most));
  remainder(profile.idle_seconds(), "between launches");
  if (profile.at_most()) {
    out += "the roofline counts loops to their ends: the device does not say how far they went\n";
  } else if (profile.roofline_seconds() > step) {
    out += kAboveRoofline;
  } else if (std::ranges::any_of(kernels, [](const KernelProfile& kernel) {
               return kernel.roofline_seconds > 1.005 * kernel.seconds;
             })) {
    out += "peak above 100 %: operands came from caches; the roofline counts memory\n";
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
