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

#include "fullbore/backend/cpu/vectors/baseline.inc"

#include "fullbore/backend/cpu/vectors/exponential.inc"

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
