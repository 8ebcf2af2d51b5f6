#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Lets a matmul add itself to the sum that a loop carries (`matmul_add`): gradients of
/// weights that many iterations share. The sum is then read and written once per iteration, where a matmul of
/// its own would be written, and read again beside the sum. Nothing changes for a target without the
/// kernel, or where the matmul is rounded or read by something else before it is added.
///
/// before  primitives, of the precision that they are to have
/// after   no loop carries the sum of itself and a matmul that only the sum reads
/// here    before fuse, which would gather the addition into a kernel of its own
Graph gemm_accumulation(const Graph& graph, const Target& target);

}  // namespace fullbore
