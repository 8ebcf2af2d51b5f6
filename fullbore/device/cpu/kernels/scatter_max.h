#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// The op scatter_max: x is copied, then updates are compared in order. An item is some of the axes before `axis`.
std::unique_ptr<Kernel> make_scatter_max(KernelRequest& request);

}  // namespace fullbore::cpu
