#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Lets rows be added by index to what they are added to anyway (`index_add`): the gradients of an embedding and of a head
/// that shares its weight. A table of a large vocabulary is then neither cleared for the few rows that a batch names nor read
/// and written once more to be added. Nothing changes for a target without the kernel, or where the scatter_add is read by
/// something else too.
///
/// before  primitives, of the precision that they are to have
/// after   no addition alone reads a scatter_add of a dtype that the target has index_add of
/// here    before fuse, which would gather the addition into a kernel of its own
Graph scatter_accumulation(const Graph& graph, const Target& target);

}  // namespace fullbore
