#pragma once
#include "fullbore/backend/cpu/kernel_list.h"

namespace fullbore::cpu {

/// Four elements from each call of philox, by the vector instructions of base/draw_unit.h: a quarter of a
/// nanosecond an element, where one that draws alone within a fused kernel takes about one.
std::unique_ptr<Kernel> make_dropout_mask(KernelRequest& request);

}  // namespace fullbore::cpu
