#pragma once
#include <memory>
#include <string>

#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::cuda {

/// The kernel of a node that kernel IR covers (device/kernel_ir/lower.h): elementwise ops, movements, reductions, scans,
/// argmax, large sources, and `fused` nodes made of those. Null, with the reason, if it is not one, or if this LLVM makes no
/// PTX. Equal nodes have equal code, and equal runs equal bits.
std::unique_ptr<CudaKernel> make_generated_kernel(const Request& request, std::string* why_not);

}  // namespace fullbore::cuda
