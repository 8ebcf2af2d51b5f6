#include "fullbore/plan/memory.h"

#include <algorithm>
#include <numeric>

namespace fullbore {
namespace {

bool live_together(const Lifetime& a, const Lifetime& b) {
  return (a.first <= b.last && b.first <= a.last) || a.first <= b.again || b.first <= a.again ||
         (a.again >= 0 && b.again >= 0);
}

}  // namespace

Placement place_by_size(const std::vector<Lifetime>& blocks, int64_t alignment) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });
  Placement placement;
  placement.offsets.resize(blocks.size(), 0);
  std::vector<size_t> placed;  // sorted by offset
  for (size_t block : order) {
    if (blocks[block].bytes == 0) continue;
    const int64_t bytes = aligned_bytes(blocks[block].bytes, alignment);
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!live_together(blocks[other], blocks[block])) continue;
      if (placement.offsets[other] - offset >= bytes) break;
      offset = std::max(offset,
                        placement.offsets[other] + aligned_bytes(blocks[other].bytes, alignment));
    }
    placement.offsets[block] = offset;
    placement.total_bytes = std::max(placement.total_bytes, offset + bytes);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), block,
                                   [&](size_t a, size_t b) {
                                     return placement.offsets[a] < placement.offsets[b];
                                   }),
                  block);
  }
  return placement;
}

Placement place_with_late_reuse(const std::vector<Lifetime>& blocks, int64_t alignment,
                                int64_t small_bytes) {
  constexpr int64_t kAllowedBytes = int64_t{128} << 20;
  Placement tight = place_by_size(blocks, alignment);
  const int64_t allowed = tight.total_bytes + kAllowedBytes;
  for (const int launches : {1024, 256, 64, 16}) {
    std::vector<Lifetime> longer = blocks;
    for (Lifetime& each : longer)
      if (each.bytes <= small_bytes) each.last += launches;
    Placement late = place_by_size(longer, alignment);
    if (late.total_bytes <= allowed) return late;
  }
  return tight;
}

Placement place_apart(const std::vector<Lifetime>& blocks, int64_t alignment) {
  Placement placement;
  for (const Lifetime& block : blocks) {
    placement.offsets.push_back(placement.total_bytes);
    placement.total_bytes += aligned_bytes(block.bytes, alignment);
  }
  return placement;
}

}  // namespace fullbore
