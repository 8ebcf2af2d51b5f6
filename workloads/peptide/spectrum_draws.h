#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>

// Random quantities from words of 64 random bits, for generators that make millions in a second.
namespace fullbore::peptide {

inline uint32_t low_half(uint64_t word) { return static_cast<uint32_t>(word); }
inline uint32_t high_half(uint64_t word) { return static_cast<uint32_t>(word >> 32); }

/// Uniform integer in [0, n), n > 0, from 32 random bits (bias below n / 2^32).
inline uint32_t integer_below(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{bits} * n) >> 32);
}
/// 32 random bits are below this with the probability, to 2^-32.
inline uint64_t limit_of(double probability) { return static_cast<uint64_t>(probability * 0x1p32); }
/// Uniform in [least, most) by the upper 24 of 32 random bits.
inline float uniform_between(uint32_t bits, float least, float most) {
  return least + (most - least) * (static_cast<float>(static_cast<int32_t>(bits >> 8)) * 0x1p-24F);
}

/// One of three uniform draws of 21 bits in a word, times 2^21.
template <int kPlace>
float third(uint64_t word) {
  return static_cast<float>(static_cast<int32_t>((word >> (21 * kPlace)) & 0x1FFFFF));
}

// The k-th least of n uniform draws is Beta(k, n + 1 - k) (David and Nagaraja 2003, Order Statistics,
// section 2.1): betas with whole parameters need neither logarithms nor rejection, nor a jump.

/// Beta(2,2): the middle one of three.
inline float beta_2_2(uint64_t word) {
  const float a = third<0>(word);
  const float b = third<1>(word);
  const float c = third<2>(word);
  return (std::max(std::min(a, b), std::min(std::max(a, b), c)) + 0.5F) * 0x1p-21F;
}

/// Beta(2,5): the second least of six.
inline float beta_2_5(uint64_t word0, uint64_t word1) {
  const float a = third<0>(word0);
  const float b = third<1>(word0);
  float least = std::min(a, b);
  float second = std::max(a, b);
  const auto add = [&](float x) {
    second = std::min(second, std::max(least, x));
    least = std::min(least, x);
  };
  add(third<2>(word0));
  add(third<0>(word1));
  add(third<1>(word1));
  add(third<2>(word1));
  return (second + 0.5F) * 0x1p-21F;
}

}  // namespace fullbore::peptide
