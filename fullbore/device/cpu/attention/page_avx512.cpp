#include <immintrin.h>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageAvx512 = make_page_unit<Avx512>();

}  // namespace fullbore::cpu
