#pragma once
#include <memory>

#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace fullbore::cpu {

/// make(loops, element) for operands of that floating dtype: an element of C++, and the loops that sum its products; bf16
/// and f16 are widened to f32.
template <class Make>
std::unique_ptr<Kernel> make_for_operands(DType dtype, VectorUnit unit, const Make& make) {
  switch (dtype) {
    case DType::f64: return make(*gemm_unit<double>(unit), double{});
    case DType::f32: return make(*gemm_unit<float>(unit), float{});
    case DType::bf16: return make(*gemm_unit<float>(unit), Bf16{});
    default: return make(*gemm_unit<float>(unit), F16{});
  }
}

}  // namespace fullbore::cpu
