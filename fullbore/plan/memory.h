#pragma once
#include <cstdint>
#include <vector>

namespace fullbore {

inline constexpr int64_t kBufferAlignment = 64;  ///< a cache line, and an AVX-512 register
constexpr int64_t aligned_bytes(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// A block of memory and the launches [first, last] during which it must keep its contents.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

/// Offsets, multiples of kBufferAlignment, such that no two blocks that are alive together overlap.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t total_bytes = 0;
};

/// Largest first, each at the lowest offset that fits: the "greedy by size" strategy of Pisarchyk
/// and Lee 2020, arXiv:2001.03288, section 5.2. Deterministic: equal sizes are placed in order.
Placement place_by_size(const std::vector<Lifetime>& blocks);

/// One after the other without reuse.
Placement place_apart(const std::vector<Lifetime>& blocks);

}  // namespace fullbore
