#include "fullbore/plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/text.h"
#include "fullbore/plan/memory.h"

namespace fullbore {
namespace {

/// A buffer in the arena, or of each thread group of a parallel loop.
struct Place {
  const Buffer* buffer = nullptr;
  int64_t offset = 0;  ///< in the arena, of the first thread group's
  int64_t copies = 1;
};

// The memory that thread groups have is told by what lies in it.
std::vector<Place> places(const Plan& plan) {
  std::vector<Place> found;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.bytes == 0 || buffer.thread_groups > 0) continue;
    if (buffer.space == Space::arena) found.push_back({&buffer, buffer.offset, 1});
    if (buffer.space != Space::thread_group) continue;
    const Buffer& memory = plan.buffers[static_cast<size_t>(buffer.base)];
    found.push_back({&buffer, memory.offset + buffer.offset, memory.thread_groups});
  }
  std::ranges::stable_sort(found, [](const Place& a, const Place& b) {
    return a.buffer->first != b.buffer->first ? a.buffer->first < b.buffer->first
                                              : a.offset < b.offset;
  });
  return found;
}

// Every launch has its column; a buffer that lives has at least one.
std::string bar(const Buffer& buffer, int launches, int columns) {
  const auto column = [&](int launch) {
    return static_cast<int>(int64_t{launch} * columns / std::max(launches, 1));
  };
  std::string text(static_cast<size_t>(columns), ' ');
  for (int i = column(buffer.first); i <= column(buffer.last); ++i)
    text[static_cast<size_t>(i)] = '#';
  return text;
}

}  // namespace

std::vector<int64_t> live_bytes(const Plan& plan) {
  const std::vector<Place> all = places(plan);
  int launches = 0;
  for (const Place& each : all) launches = std::max(launches, each.buffer->last + 1);
  std::vector<int64_t> changes(static_cast<size_t>(launches) + 1, 0);
  for (const Place& each : all) {
    const int64_t bytes = each.copies * aligned_bytes(each.buffer->bytes, plan.alignment);
    changes[static_cast<size_t>(each.buffer->first)] += bytes;
    changes[static_cast<size_t>(each.buffer->last) + 1] -= bytes;
    if (each.buffer->again < 0) continue;
    changes[0] += bytes;
    changes[static_cast<size_t>(each.buffer->again) + 1] -= bytes;
  }
  for (size_t i = 1; i < changes.size(); ++i) changes[i] += changes[i - 1];
  changes.pop_back();
  return changes;
}

std::vector<int64_t> live_bytes_by_entry(const Plan& plan) {
  const std::vector<int64_t> live = live_bytes(plan);
  std::vector<int64_t> bytes;
  size_t moment = 0;  // a loop has one for its begin and one for its end
  const std::function<void(const std::vector<PlannedLaunch>&)> walk =
      [&](const std::vector<PlannedLaunch>& launches) {
        for (const PlannedLaunch& launch : launches) {
          // Copies behind all launches, into the State, share the last moment.
          bytes.push_back(live.empty() ? 0 : live[std::min(moment, live.size() - 1)]);
          if (host_end(plan, launch) != HostEnd::none) continue;  // beside the launch behind it
          ++moment;
          if (launch.kind != PlannedLaunch::Kind::loop) continue;
          walk(launch.loop->body);
          ++moment;
        }
      };
  walk(plan.launches);
  return bytes;
}

std::string timeline_text(const Plan& plan, int columns) {
  FB_CHECK(columns >= 8, "{} columns", columns);
  const std::vector<int64_t> live = live_bytes(plan);
  const auto launches = static_cast<int>(live.size());
  const auto peak = std::max_element(live.begin(), live.end());
  std::string text =
      fmt::format("launches 0-{}, arena {} bytes ({}), at most {} live (launch {})\n",
                  std::max(launches - 1, 0), plan.arena_bytes,
                  bytes_text(static_cast<double>(plan.arena_bytes)), live.empty() ? 0 : *peak,
                  peak - live.begin());
  text += fmt::format("{:>10} {:>9} {:>4} {:>4}\n", "offset", "size", "from", "to");
  for (const Place& each : places(plan)) {
    const Buffer& buffer = *each.buffer;
    text += fmt::format(
        "{:>10} {:>9} {:>4} {:>4} |{}| {}{}\n", each.offset,
        bytes_text(static_cast<double>(buffer.bytes)), buffer.first, buffer.last,
        bar(buffer, launches, columns), buffer.what,
        each.copies > 1 ? fmt::format(" (of each of {} thread groups)", each.copies) : "");
  }
  return text;
}

}  // namespace fullbore
