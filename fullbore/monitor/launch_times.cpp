#include "fullbore/monitor/launch_times.h"

#include <algorithm>

#include "fullbore/device/thread_groups.h"

namespace fullbore {
namespace {

struct Span {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

// The workers' parts of the n-th launch of an entry make one span, where thread groups make it those of each thread group.
std::vector<std::vector<Span>> spans_of(std::span<const LaneEvents> lanes,
                                        std::span<const LaunchEntry> list) {
  const auto workers = static_cast<int>(lanes.size());
  std::vector<std::vector<Span>> spans(list.size());
  std::vector<size_t> first(list.size(), 0);  // of those of the worker's thread group
  for (int worker = 0; worker < workers; ++worker) {
    std::vector<size_t> next = first;
    for (size_t i = 0; i < list.size(); ++i)
      if (worker == first_worker(thread_group_of(worker, list[i].thread_groups, workers),
                                 list[i].thread_groups, workers))
        first[i] = next[i] = spans[i].size();
    for (const LaunchEvent& event : lanes[static_cast<size_t>(worker)].events) {
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

// Nanoseconds of each launch but loops. Where several run side by side (plan/concurrent_launches.h), each has an
// equal part of the time, so that all of them together are the time in which any ran.
std::vector<double> shared_times(const std::vector<std::vector<Span>>& spans,
                                 std::span<const LaunchEntry> list) {
  std::vector<Change> changes;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (list[i].launch->kind == PlannedLaunch::Kind::loop) continue;
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

}  // namespace

std::vector<LaunchTime> launch_times(std::span<const LaneEvents> workers,
                                     std::span<const LaunchEntry> list) {
  const std::vector<std::vector<Span>> spans = spans_of(workers, list);
  const std::vector<double> shared = shared_times(spans, list);
  std::vector<LaunchTime> times(list.size());
  for (size_t i = list.size(); i-- > 0;) {  // what a loop holds stands after it
    double whole = 1e-9 * shared[i];
    if (list[i].launch->kind == PlannedLaunch::Kind::loop)
      for (const Span& span : spans[i])
        whole += 1e-9 * static_cast<double>(span.end_ns - span.begin_ns);
    times[i].seconds += whole;
    times[i].launches = static_cast<int64_t>(spans[i].size());
    if (list[i].parent >= 0) times[static_cast<size_t>(list[i].parent)].seconds -= whole;
  }
  for (LaunchTime& each : times) each.seconds = std::max(each.seconds, 0.0);
  return times;
}

}  // namespace fullbore
