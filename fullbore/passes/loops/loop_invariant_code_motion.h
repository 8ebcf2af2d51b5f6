#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Moves out of a loop what is the same on every iteration: nodes that depend on captured operands only,
/// and carried values that no iteration changes, which become captured ones.
///
/// before  constants are folded and algebra is done, or trivial nodes would be moved
/// after   what a body computes depends on the iteration, except for what is not worth bytes of its own:
///         constants, reshapes, and repetitions (broadcast_to) of something smaller; a cast that undoes
///         one outside is none
/// here    before common_subexpression_elimination, which finds that the forward loop and its gradient move out the same
///
/// A context's projection inside a recursion, a transposed weight, a mask: computed once because the
/// compiler sees it, not because the author of the model did.
Graph loop_invariant_code_motion(const Graph& graph, const Target& target);

}  // namespace fullbore
