#include <algorithm>
#include <bit>
#include <limits>

#include "fullbore/device/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/baseline.inc"

#include "fullbore/device/cpu/recurrence/row_unit.inc"

}  // namespace

const RowUnit kRowBaseline = make_row_unit<Baseline>();

const RowUnit& row_unit([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return kRowAvx512;
  if (unit == VectorUnit::avx2) return kRowAvx2;
#endif
  return kRowBaseline;
}

}  // namespace fullbore::cpu
