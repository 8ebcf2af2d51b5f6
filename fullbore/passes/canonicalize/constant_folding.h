#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Replaces nodes whose operands are all constants by their values, evaluated by the op's own
/// reference and rounded as the op would round them.
///
/// before  any graph that verifies
/// after   no node reads constants only, except those that repeat them (broadcast_to), so that equal
///         elements stay one number: a constant has at most 4096 elements that are not all equal
/// here    before algebraic_simplification, which looks for zeros and ones
///
/// What depends on an iota is left to be computed: a formula in a kernel costs less than a table in
/// memory. Random numbers depend on State and are therefore never folded.
Graph constant_folding(const Graph& graph, const Target& target);

}  // namespace fullbore
