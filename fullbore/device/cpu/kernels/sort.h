#pragma once
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// Stable sort along the last axis by an order-preserving integer key: insertion for short rows, else
/// a least-significant-digit radix sort, one byte a pass; passes in which all keys agree are skipped.
/// A row is sorted by one worker in scratch of its own.
std::unique_ptr<Kernel> make_sort(KernelRequest& request);

}  // namespace fullbore::cpu
