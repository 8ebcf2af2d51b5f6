#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Computes once what is computed several times: nodes of the same op, attributes, operands and
/// body. Ops have no effects, so equal calls have equal results, the random ones included.
///
/// Loops are merged by more than equality. Two loops that start from the same operands and carry the
/// same values from iteration to iteration make the same iterations, whatever they stack: one loop that stacks the
/// results of both replaces them. So the forward loop that a gradient emits again, to keep more
/// (autodiff/loop_gradient.h), runs once.
///
/// before  any graph that verifies; best after algebraic_simplification and loop_invariant_code_motion
/// after   no two nodes are equal; no loop computes what another could stack on its way
/// here    after all that makes equal things look equal, before dead_code_elimination
Graph common_subexpression_elimination(const Graph& graph, const Target& target);

}  // namespace fullbore
