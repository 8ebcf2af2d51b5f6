#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx2.inc"

#include "fullbore/device/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx2 = make_tile_unit<Avx2>();

}  // namespace fullbore::cpu
