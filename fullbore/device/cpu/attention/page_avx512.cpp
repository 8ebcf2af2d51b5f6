#include <immintrin.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/tile_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/attention/page_avx512.inc"

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageAvx512 = make_page_unit<PageAvx512>();

}  // namespace fullbore::cpu
