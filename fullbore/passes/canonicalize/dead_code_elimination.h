#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Removes what no output of the graph depends on: nodes, and of loops also stacked results that
/// nobody reads, carried values that nothing read depends on, and operands that the body ignores.
///
/// before  any graph that verifies
/// after   every node, carried value and stacked result contributes to an output; the graph's own
///         inputs and outputs are its interface and stay
/// here    after common_subexpression_elimination; gradients, metrics at a log level that is off, and other passes leave
///         dead nodes behind on purpose
Graph dead_code_elimination(const Graph& graph, const Target& target);

}  // namespace fullbore
