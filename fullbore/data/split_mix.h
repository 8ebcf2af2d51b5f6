#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

namespace fullbore {

/// SplitMix64: the source of synthetic examples, such that any program can make the same ones from the same key in a
/// few lines.
/// Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", figure 14.
class SplitMix64 {
 public:
  static constexpr uint64_t kIncrement = 0x9E3779B97F4A7C15U;

  explicit SplitMix64(uint64_t key) : state_(key) {}
  /// The output of a state: a bijection in which every bit of the word decides on every bit of the result.
  static uint64_t mix(uint64_t word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9U;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBU;
    return word ^ (word >> 31);
  }
  uint64_t bits() { return mix(state_ += kIncrement); }
  /// In [0, n): the high 64 bits of a draw times n.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits()) * n) >> 64);
  }
  /// The first `count` places of a Fisher-Yates shuffle of [first, first + size), count <= size.
  std::vector<int64_t> choose(int64_t first, int64_t size, int64_t count) {
    std::vector<int64_t> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), first);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      std::swap(all[i], all[i + below(all.size() - i)]);
    all.resize(static_cast<size_t>(count));
    return all;
  }

 private:
  uint64_t state_;
};

/// One key of several numbers: an example's, by all that it depends on.
inline uint64_t mixed_key(std::initializer_list<uint64_t> parts) {
  uint64_t key = 0;
  for (const uint64_t part : parts) key = SplitMix64(key ^ part).bits();
  return key;
}

}  // namespace fullbore
