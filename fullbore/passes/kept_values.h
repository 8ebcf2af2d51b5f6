#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Per value of the graph: does it go into State or a result, or into the next trip of the loop whose
/// body the graph is, with nothing but elementwise arithmetic and movement on the way? Such values
/// keep the precision that they have.
///
/// `carried`: how many of the graph's first outputs are a loop's carried values; -1 for a whole step,
/// all of whose outputs count.
std::vector<bool> kept_values(const Graph& graph, int carried = -1);

/// Is the node one of those that the target wants in f32, or the optimiser's, whose rates and moments are never low?
bool stays_f32(const Node& node, const Target& target);

}  // namespace fullbore
