#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

// What every processor of the family has: 16 bytes, no fused multiply-add.
#define FB_TARGET
#define FB_INLINE __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Baseline {
  typedef float Register __attribute__((vector_size(16)));  // NOLINT: `using` cannot say it
  typedef int32_t Whole __attribute__((vector_size(16)));   // NOLINT
  using Wide = uint64_t;
  static constexpr int kLanes = 4;
  static constexpr int kWideLanes = 1;
  static constexpr bool kPairs = false;

  FB_INLINE Register load(const float* p) {
    Register x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
  }
  FB_INLINE void store(float* p, Register x) { __builtin_memcpy(p, &x, sizeof x); }
  FB_INLINE Register broadcast(float x) { return x - Register{}; }
  FB_INLINE Register add(Register a, Register b) { return a + b; }
  FB_INLINE Register sub(Register a, Register b) { return a - b; }
  FB_INLINE Register mul(Register a, Register b) { return a * b; }
  FB_INLINE Register div(Register a, Register b) { return a / b; }
  FB_INLINE Register fma(Register a, Register b, Register c) { return a * b + c; }
  FB_INLINE Register minimum(Register a, Register b) { return a < b ? a : b; }
  FB_INLINE Register maximum(Register a, Register b) { return a > b ? a : b; }
  FB_INLINE Register where_less(Register a, Register b, Register x, Register y) {
    return a < b ? x : y;
  }
  FB_INLINE Register power_of_two(Whole n) { return std::bit_cast<Register>((n + 127) << 23); }
  // In two factors, each a normal number.
  FB_INLINE Register times_power_of_two(Register x, Register n) {
    const Whole whole = __builtin_convertvector(n, Whole);
    const Whole half = whole >> 1;
    return x * power_of_two(half) * power_of_two(whole - half);
  }
  FB_INLINE Register exponent_of(Register x) {
    return __builtin_convertvector((std::bit_cast<Whole>(x) - 0x3f3504f3) >> 23, Register);
  }

  FB_INLINE Wide wide(uint32_t x) { return x; }
  FB_INLINE Wide wide_steps(uint32_t first, uint32_t) { return first; }
  FB_INLINE Wide wide_add(Wide a, Wide b) { return a + b; }
  FB_INLINE Wide wide_xor(Wide a, Wide b) { return a ^ b; }
  FB_INLINE Wide wide_product(Wide a, Wide b) { return (a & 0xffffffffU) * (b & 0xffffffffU); }
  FB_INLINE Wide wide_upper(Wide x) { return x >> 32; }
  FB_INLINE void store_kept(float* p, Wide x, uint32_t threshold, float kept) {
    *p = (static_cast<uint32_t>(x) >> 8) >= threshold ? kept : 0;
  }
  FB_INLINE bool store_truths(float* p, const uint8_t* truths) {
    bool any = false;
    for (int i = 0; i < kLanes; ++i) {
      p[i] = truths[i] ? 0 : -kInfinity;
      any |= truths[i] != 0;
    }
    return any;
  }
};

#include "fullbore/backend/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileBaseline = make_tile_unit<Baseline>();

const TileUnit& tile_unit(VectorUnit unit) {
  switch (unit) {
    case VectorUnit::avx512: return kTileAvx512;
    case VectorUnit::avx2: return kTileAvx2;
    case VectorUnit::baseline: break;
  }
  return kTileBaseline;
}

}  // namespace fullbore::cpu
