#include "fullbore/monitor/step_profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <numeric>

#include "fullbore/base/text.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The workers' parts of the n-th launch of an entry make one span.
std::vector<std::vector<Span>> spans_of(std::span<const WorkerEvents> workers, size_t launches) {
  std::vector<std::vector<Span>> spans(launches);
  for (const WorkerEvents& worker : workers) {
    std::vector<size_t> next(launches, 0);
    for (const LaunchEvent& event : worker.events) {
      const auto launch = static_cast<size_t>(event.launch);
      std::vector<Span>& known = spans[launch];
      const size_t occurrence = next[launch]++;
      if (occurrence == known.size()) {
        known.push_back({event.begin_ns, event.end_ns});
      } else {
        known[occurrence].begin_ns = std::min(known[occurrence].begin_ns, event.begin_ns);
        known[occurrence].end_ns = std::max(known[occurrence].end_ns, event.end_ns);
      }
    }
  }
  return spans;
}

/// A launch begins or ends.
struct Change {
  int64_t ns = 0;
  size_t launch = 0;
  bool begins = false;
};

// Nanoseconds of each launch but loops. Where several run side by side (plan/waves.h), each has an
// equal part of the time, so that all of them together are the time in which any ran.
std::vector<double> shared_times(const std::vector<std::vector<Span>>& spans,
                                 std::span<const PlannedLaunch> list) {
  std::vector<Change> changes;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (list[i].step->kind == Step::Kind::loop) continue;
    for (const Span& span : spans[i]) {
      changes.push_back({span.begin_ns, i, true});
      changes.push_back({span.end_ns, i, false});
    }
  }
  std::ranges::stable_sort(changes, {}, &Change::ns);
  std::vector<double> times(spans.size(), 0);
  std::vector<size_t> running;  // no more than there are workers
  int64_t last_ns = 0;
  for (const Change& change : changes) {
    for (const size_t launch : running)
      times[launch] +=
          static_cast<double>(change.ns - last_ns) / static_cast<double>(running.size());
    last_ns = change.ns;
    if (change.begins)
      running.push_back(change.launch);
    else
      running.erase(std::ranges::find(running, change.launch));
  }
  return times;
}

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

// "gpt:33" of "models/gpt.cpp:33": enough where there is little room.
std::string short_location(const std::string& location) {
  const std::string name = location.substr(location.rfind('/') + 1);
  const size_t dot = std::min(name.find('.'), name.size());
  return name.substr(0, dot) + name.substr(std::min(name.find(':'), name.size()));
}

// A fused kernel's list of ops is long, and those that only repeat elements tell least; the vector
// unit of products is the machine's.
std::string kernel_cell(const std::string& kernel, int columns) {
  if (columns <= 0 || kernel.size() <= static_cast<size_t>(columns)) return kernel;
  std::string text = replace_all(kernel, "broadcast_to,", "");
  for (const char* unit : {" avx512", " avx2", " baseline"}) text = replace_all(text, unit, "");
  return shortened(text, columns);
}

}  // namespace

StepProfile::StepProfile(const Plan& plan, const MachinePeaks& peaks)
    : plan_(plan),
      peaks_(peaks),
      roofline_seconds_(fullbore::roofline_seconds(plan, peaks)),
      list_(launch_list(plan)),
      times_(list_.size()) {}

// Seconds of each entry in this step, a loop's without what it holds.
std::vector<double> StepProfile::launch_seconds(std::span<const WorkerEvents> workers) {
  const std::vector<std::vector<Span>> spans = spans_of(workers, list_.size());
  const std::vector<double> shared = shared_times(spans, list_);
  std::vector<double> seconds(list_.size(), 0);
  for (size_t i = list_.size(); i-- > 0;) {  // what a loop holds stands after it
    double whole = 1e-9 * shared[i];
    if (list_[i].step->kind == Step::Kind::loop)
      for (const Span& span : spans[i])
        whole += 1e-9 * static_cast<double>(span.end_ns - span.begin_ns);
    seconds[i] += whole;
    times_[i].launches += static_cast<int64_t>(spans[i].size());
    if (list_[i].parent >= 0) seconds[static_cast<size_t>(list_[i].parent)] -= whole;
  }
  return seconds;
}

void StepProfile::add(std::span<const WorkerEvents> workers, double step_seconds) {
  for (const WorkerEvents& worker : workers) dropped_ += worker.dropped;
  const std::vector<double> seconds = launch_seconds(workers);
  for (size_t i = 0; i < seconds.size(); ++i)
    times_[i].seconds.push_back(std::max(seconds[i], 0.0));
  step_seconds_.push_back(step_seconds);
}

double StepProfile::step_seconds() const { return median(step_seconds_); }

double StepProfile::idle_seconds() const {
  double launched = 0;
  for (const LaunchTimes& times : times_) launched += median(times.seconds);
  return std::max(0.0, step_seconds() - launched);
}

std::vector<KernelProfile> StepProfile::kernels() const {
  std::map<std::pair<std::string, std::string>, KernelProfile> groups;
  for (size_t i = 0; i < list_.size(); ++i) {
    if (times_[i].launches == 0) continue;
    const Node* const node = list_[i].node();
    const std::string location = node ? node->location : "";
    KernelProfile& group = groups[{launch_text(plan_, list_[i]), location}];
    if (group.launches == 0) {
      group.kernel = launch_text(plan_, list_[i]);
      group.location = location;
      group.scope = node ? node->scope : "";
    }
    const double launches = static_cast<double>(times_[i].launches) / static_cast<double>(steps());
    const Cost cost = launch_cost(plan_, list_[i]);
    group.launches += times_[i].launches;  // of all steps, until the end
    group.seconds += median(times_[i].seconds);
    group.flops += launches * cost.flops;
    group.bytes += launches * cost.bytes;
    group.roofline_seconds += launches * launch_roofline_seconds(plan_, list_[i], peaks_);
  }
  std::vector<KernelProfile> kernels;
  for (auto& [key, group] : groups) {
    group.launches /= steps();
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
                       {"launches", kernel.launches},
                       {"seconds", kernel.seconds},
                       {"share", rate(kernel.seconds, step)},
                       {"flops", kernel.flops},
                       {"bytes", kernel.bytes},
                       {"roofline_seconds", kernel.roofline_seconds}});
  return {{"steps", profile.steps()},
          {"seconds_per_step", step},
          {"idle_seconds", profile.idle_seconds()},
          {"roofline_seconds", profile.roofline_seconds()},
          {"unrecorded_launches", profile.dropped()},
          {"kernels", kernels}};
}

std::string text(const StepProfile& profile, size_t most, int columns) {
  const double step = profile.step_seconds();
  const std::vector<KernelProfile> kernels = profile.kernels();
  std::string out =
      fmt::format("{:.3f} ms per step, median of {}; roofline {:.3f} ms, {} of it reached\n",
                  step * 1e3, profile.steps(), profile.roofline_seconds() * 1e3,
                  percent(rate(profile.roofline_seconds(), step)));
  out += "      us share    n   GF/s  GB/s peak line          kernel\n";
  double rest = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelProfile& kernel = kernels[i];
    if (i >= most) {
      rest += kernel.seconds;
      continue;
    }
    const std::string numbers = fmt::format(
        "{:8.1f} {:>5} {:4} {:6.1f} {:5.1f} {:3.0f}% {:<13} ", kernel.seconds * 1e6,
        percent(rate(kernel.seconds, step)), kernel.launches,
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
  if (profile.dropped() > 0)
    out += fmt::format("{} launches were not recorded: loops of more than a million launches\n",
                       profile.dropped());
  return out;
}

void trace_step(ChromeTrace& trace, const Plan& plan, std::span<const PlannedLaunch> list,
                std::span<const WorkerEvents> workers) {
  std::vector<std::string> names;
  for (const PlannedLaunch& launch : list) names.push_back(launch_text(plan, launch));
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
