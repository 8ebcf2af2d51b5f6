#pragma once
#include <bit>
#include <cstdint>

#include "fullbore/base/check.h"

namespace fullbore {

/// A permutation of [0, n) drawn by a key: random access, no memory. A Feistel network permutes the
/// next power of four; what falls outside [0, n) is permuted again until it falls inside, at most four
/// times on average. Source: Black, Rogaway 2002, "Ciphers with arbitrary finite domains", section 3.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key, uint64_t stream = 0)
      : n_(n),
        half_(static_cast<int>(std::bit_width(n > 1 ? n - 1 : 1) + 1) / 2),
        key_(mix(key ^ mix(stream + 0x9E3779B97F4A7C15U))) {
    FB_CHECK(n >= 1 && n <= uint64_t{1} << 62, "a permutation of {}", n);
  }

  uint64_t operator()(uint64_t index) const {
    do index = encrypt(index);
    while (index >= n_);
    return index;
  }

 private:
  /// The finaliser of SplitMix64. Source: Steele, Lea, Flood 2014, figure 16.
  static constexpr uint64_t mix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
  }
  uint64_t encrypt(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = value >> half_;
    uint64_t right = value & mask;
    for (uint64_t round = 1; round <= 6; ++round) {
      const uint64_t next = left ^ (mix(right + key_ + round * 0x9E3779B97F4A7C15U) & mask);
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
