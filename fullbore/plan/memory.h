#pragma once
#include <cstdint>
#include <vector>

namespace fullbore {

/// Rounded up to a multiple of `alignment`, which is what the device asks for (DeviceFacts).
constexpr int64_t aligned_bytes(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A block of memory and the launches [first, last] during which it must keep its contents.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
  int again = -1;  ///< and [0, again]: what comes after the last launch is the first one again
};

/// Offsets, multiples of an alignment, such that no two blocks that are alive together overlap.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t total_bytes = 0;
};

/// Largest first, each at the lowest offset that fits: the "greedy by size" strategy of Pisarchyk
/// and Lee 2020, arXiv:2001.03288, section 5.2. Deterministic: equal sizes are placed in order.
Placement place_by_size(const std::vector<Lifetime>& blocks, int64_t alignment);

/// The same, but that the bytes of blocks of at most `small_bytes` are reused some launches after their last, as many as
/// cost no more than 128 MiB.
Placement place_with_late_reuse(const std::vector<Lifetime>& blocks, int64_t alignment,
                                int64_t small_bytes);

/// One after the other without reuse.
Placement place_apart(const std::vector<Lifetime>& blocks, int64_t alignment);

}  // namespace fullbore
