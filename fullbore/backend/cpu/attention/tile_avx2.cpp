#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

#define FB_TARGET __attribute__((target("avx2,fma,f16c")))
#define FB_INLINE FB_TARGET __attribute__((always_inline)) static inline

namespace fullbore::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

#include "fullbore/backend/cpu/vectors/avx2.inc"

#include "fullbore/backend/cpu/vectors/exponential.inc"

#include "fullbore/backend/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx2 = make_tile_unit<Avx2>();

}  // namespace fullbore::cpu
