#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Rows of the result by themselves, each a copy or a sum in the order of its indices: the bits depend on nothing else.
/// Rows at or above the count are left as they are.
std::unique_ptr<Kernel> make_gather_sum(KernelRequest& request);

}  // namespace fullbore::cpu
