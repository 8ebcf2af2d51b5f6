#pragma once
#include <string>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// Checks that the graph is well formed: operands exist before their readers, types are what each
/// op infers, updates name State inputs of the same type, input names are unique, loop bodies are
/// themselves well formed. Returns "" or what is wrong, with the node's text.
std::string verify(const Graph& graph);

}  // namespace fullbore
