#pragma once
#include <bit>
#include <cstdint>

#include "fullbore/base/check.h"
#include "fullbore/data/split_mix.h"

namespace fullbore {

/// A permutation of [0, n) drawn by a key: random access, no memory. A Feistel network permutes the
/// next power of four; what falls outside [0, n) is permuted again until it falls inside, at most four
/// times on average. Source: Black, Rogaway 2002, "Ciphers with arbitrary finite domains", section 3.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key, uint64_t stream = 0)
      : n_(n),
        half_(static_cast<int>(std::bit_width(n > 1 ? n - 1 : 1) + 1) / 2),
        key_(mix(key ^ mix(stream + SplitMix64::kIncrement))) {
    FB_CHECK(n >= 1 && n <= uint64_t{1} << 62, "a permutation of {}", n);
  }

  uint64_t operator()(uint64_t index) const {
    do index = encrypt(index);
    while (index >= n_);
    return index;
  }

 private:
  static uint64_t mix(uint64_t word) { return SplitMix64::mix(word); }
  uint64_t encrypt(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = value >> half_;
    uint64_t right = value & mask;
    for (uint64_t round = 1; round <= 6; ++round) {
      const uint64_t next = left ^ (mix(right + key_ + round * SplitMix64::kIncrement) & mask);
      left = right;
      right = next;
    }
    return left << half_ | right;
  }

  uint64_t n_;
  int half_;  ///< bits of each half
  uint64_t key_;
};

}  // namespace fullbore
