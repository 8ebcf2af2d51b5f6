#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "fullbore/ir/literal.h"

namespace fullbore::testing_support {

/// How a kernel of a CUDA device is run on the machine that executes PTX.
struct MachineOptions {
  uint64_t seed = 1;        ///< of the order of blocks and threads
  bool misaligned = false;  ///< every operand one element behind a multiple of 256 bytes
  int alias_input = -1;     ///< output `alias_output` is the bytes of this input
  int alias_output = -1;
  std::string text() const;
};

struct MachineResult {
  std::vector<std::vector<char>> outputs;  ///< bytes, in storage format
  std::string problem;                     ///< "", or what was done that a GPU does not allow
  int64_t instructions = 0;                ///< of all threads
};

/// Runs a kernel's launches. Outputs and scratch begin as noise, and inputs must come out as they went in.
MachineResult run_on_machine(const cuda::CudaKernel& kernel,
                             const std::vector<const Literal*>& inputs,
                             const std::vector<TensorType>& outputs, const MachineOptions& options);

/// Runs a kernel in the ways that must give the same bits: two orders of threads, misaligned, and in place for each pair
/// that may_alias. `problem` names the way that differs.
MachineResult run_in_all_ways(const cuda::CudaKernel& kernel,
                              const std::vector<const Literal*>& inputs,
                              const std::vector<TensorType>& outputs);

}  // namespace fullbore::testing_support
