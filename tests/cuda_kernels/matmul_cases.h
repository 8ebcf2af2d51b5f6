#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/cuda/cuda_kernel.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/samples.h"

/// Products of 16-bit numbers by kernels of compute capability 9.0, on the machine that executes PTX.
namespace fullbore::testing_support {

struct MatmulCase {
  int64_t batches = 1;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, is_wide = false, adds = false, has_bias = false;
  DType dtype = DType::bf16;
  int64_t columns = 128;  ///< of a tile
  int64_t shares = 0;
  int multiprocessors = 2;
  bool by_clusters = false;  ///< of blocks

  std::string text() const;
};

struct MatmulRun {
  MaterialisedSample call;
  std::vector<const Literal*> operands;
  std::vector<TensorType> outputs;
  std::unique_ptr<cuda::CudaKernel> kernel;

  explicit MatmulRun(const MatmulCase& of);
};

/// What is wrong with what the kernel makes, in all ways; "": it agrees with the oracle.
std::string check(const MatmulCase& of);

/// How many lines with `what` in them the kernel's first entry has, each of which is met when it lacks; those that are not
/// are named.
int met_of(const MatmulCase& of, const std::string& what, std::string* not_met);

}  // namespace fullbore::testing_support
