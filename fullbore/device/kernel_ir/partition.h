#pragma once
#include "fullbore/device/kernel_ir/kernel_ir.h"

namespace fullbore::jit {

/// Cuts a kernel into items of some ten thousand points: large enough that handing one out costs
/// nothing, small enough that a few workers share most kernels evenly.
Partition make_partition(const KernelIr& kernel);

/// Floating-point operations and bytes of memory traffic of one run of the kernel.
struct KernelWork {
  double flops = 0;
  double bytes = 0;
  /// On one worker of an ordinary processor; for deciding what is worth spreading.
  double nanoseconds() const;
};
KernelWork kernel_work(const KernelIr& kernel);

}  // namespace fullbore::jit
