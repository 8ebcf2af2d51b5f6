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

// Nanoseconds of each launch, a loop's without those of the launches in it. What runs side by side
// (plan/concurrent_launches.h, thread groups) shares the time, so that all of them together are the time in which any
// ran.
std::vector<double> shared_times(const std::vector<std::vector<Span>>& spans,
                                 std::span<const LaunchEntry> list) {
  std::vector<Change> changes;
  for (size_t i = 0; i < spans.size(); ++i)
    for (const Span& span : spans[i]) {
      changes.push_back({span.begin_ns, i, true});
      changes.push_back({span.end_ns, i, false});
    }
  std::ranges::stable_sort(changes, {}, &Change::ns);
  std::vector<double> times(spans.size(), 0);
  std::vector<int> count(spans.size(), 0);  // of the launch's spans that run
  std::vector<int> alone(spans.size(), 0);  // less those of the launches in it
  std::vector<size_t> running;              // launches whose count is not 0
  int64_t last_ns = 0;
  for (const Change& change : changes) {
    int parts = 0;
    for (const size_t launch : running) parts += std::max(alone[launch], 0);
    for (const size_t launch : running)
      if (alone[launch] > 0)
        times[launch] += static_cast<double>(change.ns - last_ns) * alone[launch] / parts;
    last_ns = change.ns;
    const int more = change.begins ? 1 : -1;
    count[change.launch] += more;
    alone[change.launch] += more;
    const int parent = list[change.launch].parent;
    if (parent >= 0) alone[static_cast<size_t>(parent)] -= more;
    if (change.begins && count[change.launch] == 1) running.push_back(change.launch);
    if (count[change.launch] == 0) running.erase(std::ranges::find(running, change.launch));
  }
  return times;
}

}  // namespace

std::vector<LaunchTime> launch_times(std::span<const LaneEvents> workers,
                                     std::span<const LaunchEntry> list) {
  const std::vector<std::vector<Span>> spans = spans_of(workers, list);
  const std::vector<double> shared = shared_times(spans, list);
  std::vector<LaunchTime> times(list.size());
  for (size_t i = 0; i < list.size(); ++i)
    times[i] = {.seconds = 1e-9 * shared[i], .launches = static_cast<int64_t>(spans[i].size())};
  return times;
}

}  // namespace fullbore
