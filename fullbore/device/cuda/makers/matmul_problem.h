#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

/// What makers of matrix products share.
namespace fullbore::cuda {

/// What kernels read of a node: y [batches, m, n] = c + a b, where c is of y's extents and f32 as y is, or a bias [n].
struct MatmulOperands {
  bool transpose_a, transpose_b, adds;
  int inputs;
  int64_t m, n, k, batches;

  explicit MatmulOperands(const Request& request)
      : transpose_a(request.node.attributes.get<bool>("transpose_a")),
        transpose_b(request.node.attributes.get<bool>("transpose_b")),
        adds(request.node.op == op::matmul_add),
        inputs(static_cast<int>(request.node.inputs.size())) {
    const Shape &a = request.input(0).shape, &y = request.output(0).shape;
    const int rank = y.rank();
    m = y[rank - 2];
    n = y[rank - 1];
    k = a[rank - (transpose_a ? 2 : 1)];
    batches = y.slice(0, rank - 2).elements();
  }

  /// Do all extents, and blocks of `tile` lines, fit the numbers that kernels have?
  bool fits(int64_t tile) const {
    return std::max({m, n, k, batches}) < (int64_t{1} << 30) && divide_up(m, tile) <= UINT16_MAX;
  }
  Extent grid(int64_t tile) const {
    return {.x = static_cast<uint32_t>(divide_up(n, tile)),
            .y = static_cast<uint32_t>(divide_up(m, tile)),
            .z = static_cast<uint32_t>(std::min<int64_t>(batches, UINT16_MAX))};
  }
  int64_t blocks(int64_t tile) const { return divide_up(n, tile) * divide_up(m, tile) * batches; }
  double flops() const {
    return 2 * static_cast<double>(batches) * static_cast<double>(m) * static_cast<double>(n) *
           static_cast<double>(k);
  }
  Argument c() const { return inputs > 2 ? operand(2) : null(); }
  Argument y() const { return operand(inputs); }
  Argument scratch() const { return operand(inputs + 1); }
};

inline Argument number(int64_t extent) { return value(static_cast<int32_t>(extent)); }
/// May rows of so many 16-bit elements be moved in 16 bytes?
inline bool is_by_chunks(int64_t contiguous) { return contiguous % 8 == 0; }

/// Scratch as `scratch_bytes` say; as fast as the memory, or `share_of_peak` of bf16's arithmetic, permits.
std::unique_ptr<CudaKernel> matmul_kernel(const Request& request, const MatmulOperands& matmul,
                                          std::vector<Launch> launches, double share_of_peak,
                                          int64_t scratch_bytes = 0, bool tf32 = false);

/// Estimated, of a multiprocessor's time: what the fastest of make_warpgroup_matmul and make_tensor_core_matmul takes.
double other_cycles(const MatmulOperands& matmul, const CardFacts& card);

}  // namespace fullbore::cuda
