#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Chooses the order of nodes that lowers the peak of memory: what is made long before anybody reads it
/// is put off until then, where that frees more than keeping its operands takes.
///
/// before  nodes stand in the order in which the model and its gradient were traced
/// after   no node can be put off that would lower the estimate of the arena (node_order.h)
/// here    after reduce_intermediate_precision: bytes can be counted only when it is known what reaches memory
Graph order_nodes(const Graph& graph, const Target& target);

}  // namespace fullbore
