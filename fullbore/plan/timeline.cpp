#include "fullbore/plan/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/base/text.h"
#include "fullbore/plan/memory.h"

namespace fullbore {
namespace {

std::vector<const Buffer*> arena_buffers(const Plan& plan) {
  std::vector<const Buffer*> buffers;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.space == Space::arena && buffer.bytes > 0) buffers.push_back(&buffer);
  std::stable_sort(buffers.begin(), buffers.end(), [](const Buffer* a, const Buffer* b) {
    return a->first != b->first ? a->first < b->first : a->offset < b->offset;
  });
  return buffers;
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
  const std::vector<const Buffer*> buffers = arena_buffers(plan);
  int launches = 0;
  for (const Buffer* buffer : buffers) launches = std::max(launches, buffer->last + 1);
  std::vector<int64_t> changes(static_cast<size_t>(launches) + 1, 0);
  for (const Buffer* buffer : buffers) {
    changes[static_cast<size_t>(buffer->first)] += aligned_bytes(buffer->bytes);
    changes[static_cast<size_t>(buffer->last) + 1] -= aligned_bytes(buffer->bytes);
  }
  for (size_t i = 1; i < changes.size(); ++i) changes[i] += changes[i - 1];
  changes.pop_back();
  return changes;
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
  for (const Buffer* buffer : arena_buffers(plan))
    text += fmt::format("{:>10} {:>9} {:>4} {:>4} |{}| {}\n", buffer->offset,
                        bytes_text(static_cast<double>(buffer->bytes)), buffer->first, buffer->last,
                        bar(*buffer, launches, columns), buffer->what);
  return text;
}

}  // namespace fullbore
