#include "fullbore/lab/diagnosis/launch_totals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/monitor/launch_times.h"

namespace fullbore {
namespace {

std::string class_of(const LaunchEntry& entry) {
  switch (entry.launch->kind) {
    case PlannedLaunch::Kind::copy: return "copy";
    case PlannedLaunch::Kind::loop: return "loop";
    case PlannedLaunch::Kind::kernel: break;
  }
  return kernel_class_of(entry.node()->op->name);
}

}  // namespace

std::string kernel_class_of(std::string_view op) {
  constexpr std::string_view kGradient = "_gradient";
  if (op.ends_with(kGradient)) op.remove_suffix(kGradient.size());
  return std::string(op);
}

LaunchTotals::LaunchTotals(const std::vector<const Plan*>& plans) {
  for (const Plan* plan : plans) {
    Shape shape{
        .plan = plan, .list = launch_list(*plan), .seconds = {}, .launches = {}, .iterations = {}};
    for (std::vector<double>* each : {&shape.seconds, &shape.launches, &shape.iterations})
      each->resize(shape.list.size(), 0);
    shapes_.push_back(std::move(shape));
  }
}

void LaunchTotals::add(std::span<const LaneEvents> workers, double step_seconds, size_t shape,
                       const LoopIterations& made) {
  for (const LaneEvents& worker : workers) dropped_ += worker.dropped;
  Shape& sums = shapes_[shape];
  const std::vector<LaunchTime> times = launch_times(workers, sums.list);
  const LoopIterations iterations = made.empty() ? most_iterations(*sums.plan) : made;
  double launched = 0;
  for (size_t i = 0; i < times.size(); ++i) {
    sums.seconds[i] += times[i].seconds;
    sums.launches[i] += static_cast<double>(times[i].launches);
    if (i < iterations.size()) sums.iterations[i] += iterations[i];
    launched += times[i].seconds;
  }
  ++steps_;
  step_seconds_ += step_seconds;
  idle_seconds_ += std::max(0.0, step_seconds - launched);
}

std::vector<KernelClass> LaunchTotals::classes(const MachinePeaks& peaks) const {
  std::map<std::string, KernelClass> found;
  for (const Shape& shape : shapes_)
    for (size_t i = 0; i < shape.list.size(); ++i) {
      if (shape.launches[i] == 0) continue;
      const double launches = shape.launches[i];
      const double made = shape.iterations[i] / launches;  // of one launch of a loop
      const Cost cost = launch_cost(*shape.plan, shape.list[i], made);
      const double roofline =
          launches * launch_roofline_seconds(*shape.plan, shape.list[i], peaks, made);
      KernelClass& sums = found[class_of(shape.list[i])];
      sums.seconds += shape.seconds[i];
      sums.launches += launches;
      sums.flops += launches * cost.flops;
      sums.bytes += launches * cost.bytes;
      sums.roofline_seconds += roofline;
      // The roofline is the larger of both times: it is memory's where bytes alone take as long.
      if (launches * cost.bytes / peaks.bytes_per_second >= roofline * (1 - 1e-9))
        sums.memory_seconds += roofline;
    }
  std::vector<KernelClass> classes;
  for (auto& [name, sums] : found) {
    if (sums.seconds <= 0) continue;
    sums.name = name;
    classes.push_back(std::move(sums));
  }
  std::ranges::stable_sort(classes, std::greater<>(), &KernelClass::seconds);
  return classes;
}

}  // namespace fullbore
