#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

// GCC 12 takes its own _mm512_undefined_*() for a mistake of ours (GCC bug 105593).
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define FB_BF16
#define FB_TARGET \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

#include "fullbore/backend/cpu/vectors/avx512.inc"

#include "fullbore/backend/cpu/vectors/exponential.inc"

#include "fullbore/backend/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx512Bf16 = make_tile_unit<Avx512>();

}  // namespace fullbore::cpu
