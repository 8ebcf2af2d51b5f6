#pragma once
#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::jit {

/// Does the kernel only move 16-bit floats, so that their bits need no conversion?
bool moves_only(const KernelIr& kernel);

}  // namespace fullbore::jit
