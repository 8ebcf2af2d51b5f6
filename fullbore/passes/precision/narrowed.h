#pragma once
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// x, f32, in the low type `dtype` (bf16, f16): a cast of it that is there already serves, and what was
/// widened from that type is what it was.
Tensor narrowed(Tensor x, DType dtype);

}  // namespace fullbore
