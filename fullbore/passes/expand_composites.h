#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Replaces every composite op that the target has no kernel for by its decomposition, in bodies
/// too, until none is left.
///
/// before  any graph that verifies
/// after   every node is a primitive, a region, or a composite that the target claims
/// here    first, and mandatory: later passes then see all arithmetic, and a backend needs kernels
///         for primitives alone
Graph expand_composites(const Graph& graph, const Target& target);

}  // namespace fullbore
