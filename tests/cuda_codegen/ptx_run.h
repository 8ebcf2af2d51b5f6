#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/ir/literal.h"

namespace fullbore::testing_support {

/// How a kernel is launched on the machine that executes PTX.
struct PtxRunOptions {
  uint64_t seed = 1;       ///< of the order of blocks and threads
  int64_t misaligned = 0;  ///< bytes by which every buffer is off a multiple of 512
  /// Changes the text before it is executed: a planted fault.
  std::function<std::string(std::string)> edit = {};
};

/// Runs the kernel's launches on operands in host memory: inputs, then outputs. Those that are the same bytes are one
/// buffer. ptx::Fault: a race, an access beyond a buffer, an instruction that is not known.
void run_on_ptx(const cuda::CudaKernel& kernel, std::span<const std::span<std::byte>> operands,
                const PtxRunOptions& options = {});

/// The outputs, as stored. Those in `on_input` (an input's index, or -1) lie on that input's bytes.
std::vector<Literal> run_on_ptx(const cuda::CudaKernel& kernel,
                                const std::vector<const Literal*>& inputs,
                                const std::vector<TensorType>& outputs,
                                const PtxRunOptions& options = {},
                                const std::vector<int>& on_input = {});

}  // namespace fullbore::testing_support
