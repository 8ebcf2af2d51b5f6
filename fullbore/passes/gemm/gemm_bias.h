#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Makes one node of a matmul and the bias of its columns, where a device has such a kernel (Target::native_ops): the
/// sums are not written, read and written again for the sake of a vector.
///
/// before  matmuls read bf16 or f16; a repeated vector is added to their results in f32, and the sum is rounded
/// after   such a matmul whose result nobody else reads is a matmul_bias, and so is the addition and the rounding, which
///         is the only one: where the matmul's result was rounded too, one rounding fewer is left
/// here    after low_precision_weight_copies, which looks for matmuls; before fuse, which would make a kernel of the
///         addition
///
/// What is read in f32 too, an activation or a residual behind the addition, stays a kernel of its own: as one with the
/// matmul it would take the time of warps that have nothing else to do, and save one reading.
Graph gemm_bias(const Graph& graph, const Target& target);

}  // namespace fullbore
