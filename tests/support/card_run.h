#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::testing_support {

/// Whether the environment's FB_TEST_CARD names a card ("cuda", "cuda:1"): tests that execute a kernel's PTX run it there
/// in place of the machine of tests/support/ptx, which sees more and is slow.
bool runs_on_card();

/// Runs the kernel's launches on that card, on operands in host memory: inputs, then outputs. Those that are the same bytes
/// are one buffer; each begins `misaligned[i]` bytes (or none) behind a multiple of 256. DeviceError: a launch fails, or
/// writes closely beyond a buffer's end.
void run_on_card(const cuda::CudaKernel& kernel, std::span<const std::span<std::byte>> operands,
                 std::span<const int64_t> misaligned = {});

}  // namespace fullbore::testing_support
