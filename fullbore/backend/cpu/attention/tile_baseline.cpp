#include <bit>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/backend/cpu/vectors/baseline.inc"

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
