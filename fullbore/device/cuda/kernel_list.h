#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::cuda {

/// The first of the hand-written kernels for the node's op that takes it; null, and why each declined, if there is none.
/// What is not in the list is compiled from kernel IR. Called by several threads at once.
std::unique_ptr<CudaKernel> make_listed_kernel(const Request& request, std::string* why_not);

/// Ops that have a hand-written kernel.
std::set<const OpDef*> listed_ops();

/// Composite ops that have one, and dtypes of their first operand: those of a device's target, but for what the card is
/// too old for (why_no_fp8()).
std::map<const OpDef*, std::set<DType>> listed_composites();

}  // namespace fullbore::cuda
