#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Algebra on one node at a time: what changes nothing goes, what can be said more simply is.
///
/// before  constants are folded: operands that are one number everywhere can be seen
/// after   no rule of simplify_elementwise.cpp and simplify_movement.cpp applies anywhere
/// here    after constant_folding; before common_subexpression_elimination, which finds more that is equal
///
/// All rules hold in IEEE arithmetic for every operand, infinities and NaN included, with two
/// exceptions: x + 0 becomes x, so that a zero may keep a minus sign (x * 0 stays, for x may be NaN); and
/// what is reduced along leading axes and others is added or multiplied in another order.
Graph algebraic_simplification(const Graph& graph, const Target& target);

}  // namespace fullbore
