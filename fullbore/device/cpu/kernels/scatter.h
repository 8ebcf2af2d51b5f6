#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Both scatters share the work by destination, never by update, and add the updates of one element
/// in their order: the bits depend on nothing else. bf16 and f16 are summed in f32, in scratch.
std::unique_ptr<Kernel> make_scatter_add(KernelRequest& request);
std::unique_ptr<Kernel> make_scatter_along_axis(KernelRequest& request);

}  // namespace fullbore::cpu
