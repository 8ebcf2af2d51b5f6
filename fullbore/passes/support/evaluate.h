#pragma once
#include <optional>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

/// The results of one node on given operands, rounded to their dtypes, or nothing if its op has no
/// rule of its own for single calls (regions, composites).
std::optional<std::vector<Literal>> evaluate(const Graph& graph, const Node& node,
                                             const std::vector<const Literal*>& operands);

}  // namespace fullbore
