#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Replaces every composite op that the target has no kernel for by its decomposition, in bodies
/// too, until none is left. Before that, a node that another one includes (OpDef::included_in) gives
/// way to it: a loss whose gradient is asked for too is made once.
///
/// before  any graph that verifies
/// after   every node is a primitive, a region, or a composite that the target supports natively;
///         nothing is computed beside a node that includes it
/// here    first, and mandatory: later passes then see all arithmetic, and a device needs kernels
///         for primitives alone
Graph expand_composites(const Graph& graph, const Target& target);

}  // namespace fullbore
