#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx512 = make_tile_unit<Avx512>();

}  // namespace fullbore::cpu
