#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Lets every kernel that needs a value make it by itself, so that it never reaches memory: what a few cheap
/// elementwise ops make of values that the kernel reads anyway, or reads instead. A forward pass does not write the
/// product of what it writes too, and the gradient does not read it; a cotangent is not multiplied by four weights for
/// four readers. In f32 those ops are exponentials and quotients too, so that of a gate nothing is kept for the gradient but
/// what it was made of. (Kernels wait for memory, not for such arithmetic; what is recomputed to save memory is another
/// matter, passes/memory/rematerialize.h.)
///
/// Nor are zeros that several loops begin with copied for each: each has its own.
///
/// before  kernels are settled: `fused` nodes, and elementwise nodes and reductions alone (fuse.h)
/// after   no kernel reads more bytes than before, but for numbers of rows and columns, and no value has to live longer
///         unless one of as many bytes need not. In low precision sums and differences are not rematerialized from what
///         memory keeps rounded
/// here    right after fuse, whose kernels it looks into; before reduce_intermediate_precision, which counts what reaches
///         memory
///
/// A graph without a `fused` node is left as it is.
Graph rematerialize_cheap_values(const Graph& graph, const Target& target);

}  // namespace fullbore
