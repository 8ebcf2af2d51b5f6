#pragma once
#include "fullbore/ir/op_handle.h"

namespace fullbore::op {
/// See matmul_bias.cpp.
inline const OpHandle matmul_bias{"matmul_bias"};
}  // namespace fullbore::op
