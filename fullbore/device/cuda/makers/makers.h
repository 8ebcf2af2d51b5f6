#pragma once
#include <memory>
#include <string>

#include "fullbore/device/cuda/cuda_kernel.h"

/// Makers of hand-written kernels: the kernel, or null and why not.
namespace fullbore::cuda {

// moves.cpp
std::unique_ptr<CudaKernel> make_gather(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_take_along_axis(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_update_rows(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_sort(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_dropout_mask(const Request& request, std::string* why_not);

// scatter.cpp
std::unique_ptr<CudaKernel> make_gather_sum(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_scatter_add(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_scatter_along_axis(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_scatter_max(const Request& request, std::string* why_not);

// matmul.cpp, of matmul and matmul_add
std::unique_ptr<CudaKernel> make_warpgroup_matmul(const Request& request, std::string* why_not);
/// What make_warpgroup_matmul makes, with tiles of 128 or 256 columns: blocks that have whole tiles, or `shares` of them.
std::unique_ptr<CudaKernel> warpgroup_matmul(const Request& request, int64_t columns,
                                             int64_t shares);
std::unique_ptr<CudaKernel> make_plain_matmul(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_tensor_core_matmul(const Request& request, std::string* why_not);

// matmul_clusters.cpp
std::unique_ptr<CudaKernel> make_cluster_matmul(const Request& request, std::string* why_not);
/// What make_cluster_matmul makes, likewise: pairs that have whole tiles, or `shares` of them.
std::unique_ptr<CudaKernel> cluster_matmul(const Request& request, int64_t columns, int64_t shares);

// fp8_matmul.cpp
std::unique_ptr<CudaKernel> make_fp8_matmul(const Request& request, std::string* why_not);
/// Why a card multiplies no 8-bit floats: "needs compute capability 8.9 or later, the card has 8.6"; "": it does.
std::string why_no_fp8(const CardFacts& card);

// attention.cpp, apart and packed
std::unique_ptr<CudaKernel> make_attention(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_attention_gradient(const Request& request, std::string* why_not);

// paged_attention.cpp
std::unique_ptr<CudaKernel> make_paged_attention(const Request& request, std::string* why_not);

// quantized_linear.cpp
std::unique_ptr<CudaKernel> make_quantized_linear(const Request& request, std::string* why_not);

// convolution.cpp
std::unique_ptr<CudaKernel> make_convolution(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_convolution_weight_gradient(const Request& request,
                                                             std::string* why_not);

// recurrence.cpp
std::unique_ptr<CudaKernel> make_recurrence_states(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_recurrence_outputs(const Request& request, std::string* why_not);
std::unique_ptr<CudaKernel> make_recurrence_gradient(const Request& request, std::string* why_not);

}  // namespace fullbore::cuda
