#pragma once
#include <memory>
#include <string>

#include "fullbore/device/cuda/cublaslt/matmuls.h"
#include "fullbore/device/cuda/cuda_kernel.h"

namespace fullbore::cuda {

/// Is it an op that cuBLASLt may make: matmul, matmul_add? Of a bias it takes the result's dtype, where that of matmul_bias is f32.
bool is_library_matmul(const Node& node);

/// The node's product by cuBLASLt. Null, and why: its dtypes or extents are none of the library's, or that has no algorithm.
std::unique_ptr<CudaKernel> make_library_matmul(const Request& request, LibraryMatmuls& library,
                                                std::string* why_not);

}  // namespace fullbore::cuda
