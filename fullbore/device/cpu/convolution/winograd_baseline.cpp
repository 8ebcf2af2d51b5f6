#include <bit>
#include <limits>

#include "fullbore/device/cpu/convolution/winograd_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/baseline.inc"

#include "fullbore/device/cpu/convolution/winograd_unit.inc"

}  // namespace

const WinogradUnit kWinogradBaseline = make_winograd_unit<Baseline>();

const WinogradUnit& winograd_unit([[maybe_unused]] VectorUnit unit) {
#if defined(__x86_64__)
  if (unit == VectorUnit::avx512) return kWinogradAvx512;
  if (unit == VectorUnit::avx2) return kWinogradAvx2;
#endif
  return kWinogradBaseline;
}

}  // namespace fullbore::cpu
