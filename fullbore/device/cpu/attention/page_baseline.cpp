#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/tile_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/baseline.inc"

struct PageBaseline : Baseline {
  FB_INLINE Register sums(const Register* x) {
    const Register a = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5) +
                       __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
    const Register b = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5) +
                       __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
  }

  FB_INLINE float largest(Register x) {
    return std::max(std::max(x[0], x[1]), std::max(x[2], x[3]));
  }
  FB_INLINE void unzip(Register a, Register b, Register& even, Register& odd) {
    even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
  }
  FB_INLINE void zip(Register even, Register odd, Register& a, Register& b) {
    a = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
    b = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
  }

  template <class T>
  FB_INLINE Register load_as(const T* p) {
    Register x{};
    for (int i = 0; i < kLanes; ++i) x[i] = cpu::load(p[i]);
    return x;
  }
  FB_INLINE void load_pairs(const Bf16* p, Register& even, Register& odd) {
    typedef uint32_t Words __attribute__((vector_size(16)));  // NOLINT
    Words pairs{};
    __builtin_memcpy(&pairs, p, sizeof pairs);
    even = std::bit_cast<Register>(pairs << 16);
    odd = std::bit_cast<Register>(pairs & 0xffff0000U);
  }
};

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageBaseline = make_page_unit<PageBaseline>();

const PageUnit& page_unit([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return kPageAvx512;
  if (unit == VectorUnit::avx2) return kPageAvx2;
#endif
  return kPageBaseline;
}

const PagePairLoops* page_pair_loops() {
#if defined(__x86_64__)
  return &kPagePairsAvx512;
#else
  return nullptr;
#endif
}

}  // namespace fullbore::cpu
