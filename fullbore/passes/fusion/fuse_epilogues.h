#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Puts the kernel that reads a product behind the product itself: one `fused` node whose body begins
/// with the matmul, so that bias, activation, residual, dropout and casts are applied to tiles of the
/// product while they are in cache, and a launch with its barrier goes away.
///
/// before  kernels are settled (`fused` nodes and single elementwise ones), and so are storage dtypes
/// after   a matmul or panel_matmul of one matrix by another, read as a whole by a kernel that is elementwise or ends in
///         reductions of rows, is the first node of that kernel's body; a product with other readers is
///         a result of the node too
/// here    after all that looks into kernels; before schedule, which orders what is there now
///
/// A product has one kernel behind it, the first that does not wait for another reader of the product.
/// The arithmetic is as before, rounding included, so the bits are too. Where values may be rematerialized to
/// save memory, only products that vanish are taken: to make an activation again from a kept product is
/// cheap, to make the product again is not. What is worth it is the target's to say (EpilogueTarget).
Graph fuse_epilogues(const Graph& graph, const Target& target);

}  // namespace fullbore
