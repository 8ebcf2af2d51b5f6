#include <immintrin.h>

#include <limits>

#include "fullbore/device/cpu/convolution/winograd_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx512.inc"

#include "fullbore/device/cpu/convolution/winograd_unit.inc"

}  // namespace

const WinogradUnit kWinogradAvx512 = make_winograd_unit<Avx512>();

}  // namespace fullbore::cpu
