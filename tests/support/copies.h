#pragma once
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

/// Inputs for a graph that has been through passes which let it read copies of parameters: `inputs` are those of the
/// graph before, and the copies are what they make of the parameters among them.
std::vector<Literal> with_copies(const Graph& graph, const std::vector<Literal>& inputs);

/// Those outputs of the graph that update no copy.
std::vector<Literal> without_copies(const Graph& graph, const std::vector<Literal>& outputs);

/// "" or which of `outputs`, the graph's own, updates a copy by something else than a copy of the updated parameter.
std::string check_copies(const Graph& graph, const std::vector<Literal>& inputs,
                         const std::vector<Literal>& outputs);

}  // namespace fullbore
