#include <immintrin.h>

#include <algorithm>
#include <limits>

#include "fullbore/backend/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/backend/cpu/vectors/avx2.inc"

#include "fullbore/backend/cpu/recurrence/row_unit.inc"

}  // namespace

const RowUnit kRowAvx2 = make_row_unit<Avx2>();

}  // namespace fullbore::cpu
