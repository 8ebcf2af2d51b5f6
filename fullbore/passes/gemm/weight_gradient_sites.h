#pragma once
#include <optional>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// Part of batch_weight_gradients: the matmuls of each sum of the graph itself, not of its bodies; none if
/// nothing is to be gathered.
std::optional<Graph> gather_sites(const Graph& graph);

}  // namespace fullbore
