#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "fullbore/device/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx2.inc"

#include "fullbore/device/cpu/recurrence/row_unit.inc"

}  // namespace

const RowUnit kRowAvx2 = make_row_unit<Avx2>();

}  // namespace fullbore::cpu
