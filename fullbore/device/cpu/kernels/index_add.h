#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Work is shared by columns. Of each row its updates are added in their order, and the sum to the row: the bits of f32 and f64
/// are those of scatter_add and add; narrower ones are rounded once. Where the result lies in the base's place, rows without
/// updates are not touched.
std::unique_ptr<Kernel> make_index_add(KernelRequest& request);

}  // namespace fullbore::cpu
