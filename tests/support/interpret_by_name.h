#pragma once
#include <map>
#include <string>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

/// Evaluates a graph in the interpreter, inputs and outputs found by name. An input that is not
/// given is zero. The graph must verify; a name that the graph lacks aborts.
std::map<std::string, Literal> interpret_by_name(const Graph& graph,
                                                 const std::map<std::string, Literal>& inputs);

}  // namespace fullbore
