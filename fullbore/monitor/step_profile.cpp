#include "fullbore/monitor/step_profile.h"

#include <algorithm>
#include <utility>

#include "fullbore/monitor/launch_times.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; }

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

void StepProfile::set_occupancies(OccupancySource& device) {
  for (ShapeProfile& shape : shapes_) {
    shape.occupancies.clear();
    for (const std::shared_ptr<Kernel>& kernel : shape.plan->kernels)
      shape.occupancies.push_back(device.occupancy(*kernel));
  }
}

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
    add_occupancy(shape, *launch.launch, group);
  }
}

void StepProfile::add_occupancy(const ShapeProfile& shape, const PlannedLaunch& launch,
                                KernelProfile& group) {
  if (shape.occupancies.empty() || launch.kind != PlannedLaunch::Kind::kernel) return;
  const std::optional<Occupancy>& each = shape.occupancies[static_cast<size_t>(launch.kernel)];
  if (each && (!group.occupancy || each->share < group.occupancy->share)) group.occupancy = each;
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

}  // namespace fullbore
