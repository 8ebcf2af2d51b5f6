#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Puts the kernel that reads a matmul behind the matmul itself: one `fused` node whose body begins
/// with the matmul, so that bias, activation, residual, dropout and casts are applied to tiles of the
/// matmul while they are in cache, and a launch with its barrier goes away.
///
/// before  kernels are settled (`fused` nodes and single elementwise ones), and so are storage dtypes
/// after   a matmul or prepacked_matmul of one matrix by another, read as a whole by a kernel that is elementwise or ends in
///         reductions of rows, is the first node of that kernel's body; a matmul with other readers is
///         a result of the node too
/// here    after all that looks into kernels; before order_nodes, which orders what is there now
///
/// A matmul has one kernel behind it, the first that does not wait for another reader of the matmul.
/// The arithmetic is as before, rounding included, so the bits are too. Where values may be rematerialized to
/// save memory, only matmuls that vanish are taken: to make an activation again from a kept matmul is
/// cheap, to make the matmul again is not. What is worth it is the target's to say (EpilogueTarget).
Graph fuse_epilogues(const Graph& graph, const Target& target);

}  // namespace fullbore
