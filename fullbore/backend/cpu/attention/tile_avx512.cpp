#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/backend/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/backend/cpu/vectors/avx512.inc"

#include "fullbore/backend/cpu/attention/tile_unit.inc"

}  // namespace

const TileUnit kTileAvx512 = make_tile_unit<Avx512>();

}  // namespace fullbore::cpu
