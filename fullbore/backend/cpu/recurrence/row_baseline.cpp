#include <algorithm>
#include <bit>
#include <limits>

#include "fullbore/backend/cpu/recurrence/row_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/backend/cpu/vectors/baseline.inc"

#include "fullbore/backend/cpu/recurrence/row_unit.inc"

}  // namespace

const RowUnit kRowBaseline = make_row_unit<Baseline>();

const RowUnit& row_unit(VectorUnit unit) {
  switch (unit) {
    case VectorUnit::avx512: return kRowAvx512;
    case VectorUnit::avx2: return kRowAvx2;
    case VectorUnit::baseline: break;
  }
  return kRowBaseline;
}

}  // namespace fullbore::cpu
