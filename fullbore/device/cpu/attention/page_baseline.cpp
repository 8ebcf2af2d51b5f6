#include <bit>

#include <iterator>
#include <limits>
#include <utility>

#include "fullbore/device/cpu/attention/page_unit.h"
#include "fullbore/device/cpu/attention/tile_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/baseline.inc"

#include "fullbore/device/cpu/attention/page_unit.inc"

}  // namespace

const PageUnit kPageBaseline = make_page_unit<Baseline>();

const PageUnit& page_unit([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return kPageAvx512;
  if (unit == VectorUnit::avx2) return kPageAvx2;
#endif
  return kPageBaseline;
}

}  // namespace fullbore::cpu
