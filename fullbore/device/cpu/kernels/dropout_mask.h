#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Eight elements from each call of philox, by the vector instructions of base/draw_unit.h: an eighth of a
/// nanosecond an element, where one that draws alone within a fused kernel takes about one.
std::unique_ptr<Kernel> make_dropout_mask(KernelRequest& request);

}  // namespace fullbore::cpu
