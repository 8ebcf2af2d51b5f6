#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Gathers elementwise nodes, and the reductions of rows among them, into `fused` nodes: one kernel
/// each, whose intermediate values never reach memory. What is repeated (broadcast_to), counted
/// (iota), constant, cut out (slice) or padded is computed where it is read.
///
/// before  primitives; equal nodes are one
/// after   each `fused` body evaluates elements of one index space: every value in it has either all
///         elements of the space or one per row of it, where rows are what the body's reductions
///         combine, the same trailing axes in all of them; or the body ends in a sum of columns
///         (fusion_space.h)
/// here    after all passes that look at single nodes
///
/// Nodes are joined along the edges between them, first those whose value nobody else reads (it
/// vanishes), then the others (a read is saved), as long as no path leads from the group through
/// something else back into it.
Graph fuse(const Graph& graph, const Target& target);

}  // namespace fullbore
