#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Writes the rows in place where x's memory may be the result's, else copies x first. One item: updates of a row keep
/// their order, and are few.
std::unique_ptr<Kernel> make_update_rows(KernelRequest& request);

}  // namespace fullbore::cpu
