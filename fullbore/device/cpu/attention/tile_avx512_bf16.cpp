#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/tile_unit.h"

#define FB_BF16

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx512Bf16 = make_tile_unit<Avx512>();

}  // namespace fullbore::cpu
