#include "fullbore/device/cuda/executor/memory_hazards.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fullbore::cuda {

std::vector<MemoryAccess> joined(std::vector<MemoryAccess> accesses) {
  std::ranges::sort(accesses, {}, [](const MemoryAccess& access) {
    return std::pair(access.is_written, access.begin);
  });
  std::vector<MemoryAccess> all;
  for (const MemoryAccess& access : accesses) {
    const bool meets = !all.empty() && all.back().is_written == access.is_written &&
                       access.begin <= all.back().end;
    if (meets)
      all.back().end = std::max(all.back().end, access.end);
    else if (access.begin < access.end)
      all.push_back(access);
  }
  return all;
}

void MemoryHazards::cut(uint64_t at) {
  auto next = stretches_.upper_bound(at);
  if (next == stretches_.begin()) return;
  Stretch& before = std::prev(next)->second;
  if (std::prev(next)->first == at || before.end <= at) return;
  stretches_.emplace_hint(next, at, before);
  before.end = at;
}

// What nobody touched so far becomes stretches of its own.
void MemoryHazards::read(const MemoryAccess& access, int node) {
  uint64_t at = access.begin;
  for (auto each = stretches_.lower_bound(access.begin);
       each != stretches_.end() && each->first < access.end; ++each) {
    if (at < each->first)
      stretches_.emplace_hint(each, at,
                              Stretch{.end = each->first, .writer = -1, .readers = {node}});
    if (each->second.readers.empty() || each->second.readers.back() != node)
      each->second.readers.push_back(node);
    at = each->second.end;
  }
  if (at < access.end) stretches_[at] = {.end = access.end, .writer = -1, .readers = {node}};
}

void MemoryHazards::write(const MemoryAccess& access, int node) {
  stretches_.erase(stretches_.lower_bound(access.begin), stretches_.lower_bound(access.end));
  stretches_[access.begin] = {.end = access.end, .writer = node, .readers = {}};
}

std::vector<int> MemoryHazards::add(std::span<const MemoryAccess> accesses) {
  const int node = edges_.nodes();
  DirectEdges::Candidates candidates;
  for (const MemoryAccess& access : accesses) {
    if (access.begin >= access.end) continue;
    cut(access.begin);
    cut(access.end);
    for (auto each = stretches_.lower_bound(access.begin);
         each != stretches_.end() && each->first < access.end; ++each) {
      if (each->second.writer >= 0) candidates.insert(each->second.writer);
      if (access.is_written)
        candidates.insert(each->second.readers.begin(), each->second.readers.end());
    }
  }
  for (const bool is_written : {false, true})
    for (const MemoryAccess& access : accesses) {
      if (access.begin >= access.end || access.is_written != is_written) continue;
      cut(access.begin);  // of what the node's other accesses made
      cut(access.end);
      is_written ? write(access, node) : read(access, node);
    }
  return edges_.add(candidates);
}

}  // namespace fullbore::cuda
