#include <immintrin.h>

#include <limits>

#include "fullbore/device/cpu/convolution/winograd_unit.h"

namespace fullbore::cpu {
namespace {

#include "fullbore/device/cpu/simd/avx2.inc"

#include "fullbore/device/cpu/convolution/winograd_unit.inc"

}  // namespace

const WinogradUnit kWinogradAvx2 = make_winograd_unit<Avx2>();

}  // namespace fullbore::cpu
