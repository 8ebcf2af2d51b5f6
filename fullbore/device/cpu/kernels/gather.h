#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Rows by index: copies, bound by memory. An index out of range gives zeros.
std::unique_ptr<Kernel> make_gather(KernelRequest& request);
/// Elements by index along one axis.
std::unique_ptr<Kernel> make_take_along_axis(KernelRequest& request);

}  // namespace fullbore::cpu
