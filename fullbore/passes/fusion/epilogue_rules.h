#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// A value's source, through what only renames it (Tag::identity).
Value renamed_from(const Graph& graph, Value value);

/// Is the node a matmul of one matrix by another for which the target asks for an epilogue?
bool may_have_epilogue(const Graph& graph, const Node& node, const Target& target);

/// Can the kernel be the epilogue of the matmul: does it read all of it, element by element or row by row?
bool fits_behind(const Graph& graph, const Node& matmul, const Node& kernel);

}  // namespace fullbore
