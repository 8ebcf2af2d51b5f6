#pragma once
#include <array>
#include <cstdint>
#include <span>

namespace fullbore {

/// Philox4x32-10: four random words from a counter and a key, with no state.
/// Source: Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.
constexpr std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter,
                                             std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9U;
    key[1] += 0xBB67AE85U;
  }
  return counter;
}

/// 128 random bits for the 64-bit key and the 128-bit counter (counter_low in words 0-1, counter_high in words 2-3): words
/// 0 and 1, word 0 low, then words 2 and 3.
constexpr std::array<uint64_t, 2> philox_halves(uint64_t key, uint64_t counter_low,
                                                uint64_t counter_high) {
  const auto words =
      philox4x32({static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                  static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)},
                 {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  return {words[0] | (uint64_t{words[1]} << 32), words[2] | (uint64_t{words[3]} << 32)};
}

/// The first 64 of them. The op `philox` is this, elementwise; `philox_upper` gives the others.
constexpr uint64_t philox_bits(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  return philox_halves(key, counter_low, counter_high)[0];
}

/// Sequential draws from one key, for hosts: shuffles, initial values, tests.
class PhiloxStream {
 public:
  explicit PhiloxStream(uint64_t key, uint64_t stream = 0) : key_(key), stream_(stream) {}
  uint64_t bits() { return philox_bits(key_, position_++, stream_); }
  /// Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform integer in [0, n), by multiplication (bias below n / 2^64).
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(bits()) * n) >> 64);
  }
  double normal();  ///< standard normal (Box-Muller, two draws)

  // Many at once, many times faster; each is what the single call would give next.
  void uniforms(std::span<double> out);
  void normals(std::span<double> out);
  /// normals() of that deviation about that mean, rounded to float.
  void normals(std::span<float> out, double mean, double deviation);
  void skip(uint64_t draws) { position_ += draws; }

 private:
  template <class Take>
  void normal_blocks(size_t count, const Take& take);
  uint64_t key_;
  uint64_t stream_;
  uint64_t position_ = 0;
};

}  // namespace fullbore
