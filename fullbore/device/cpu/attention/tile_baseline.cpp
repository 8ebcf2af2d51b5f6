#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/baseline.inc"

#include "fullbore/device/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileBaseline = make_tile_unit<Baseline>();

const TileUnit& tile_unit([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return kTileAvx512;
  if (unit == VectorUnit::avx2) return kTileAvx2;
#endif
  return kTileBaseline;
}

}  // namespace fullbore::cpu
