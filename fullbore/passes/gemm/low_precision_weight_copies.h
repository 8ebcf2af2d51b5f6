#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Lets matmuls read their weights in a low dtype from copies that are kept from run to run, where the target keeps
/// copies (passes/gemm/derived_weights.h): whoever writes a parameter has the copies derived anew, and the optimiser's
/// own sweep writes them beside the parameter, so that a step neither reads all parameters once more nor waits for
/// casts.
///
/// before  casts of weights stand outside of loops, and equal ones are one
/// after   no node reads the cast of a parameter, trained or frozen: it is an input of role `copy`; where the graph
///         updates the parameter, it updates the copy, by the cast of the new value
/// here    after removal, which leaves only casts that are read; before fuse, which takes the casts of new values into
///         the kernels that make them
///
/// A copy holds the very bits of the cast. It lives from run to run and as long as the State, where the cast took as
/// many bytes of the arena from its first reader to its last: in training that is nearly the whole step.
Graph low_precision_weight_copies(const Graph& graph, const Target& target);

}  // namespace fullbore
