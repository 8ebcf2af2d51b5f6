#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Per value of the graph: does it go into State or a result, or into the next trip of the loop whose
/// body the graph is, with nothing but elementwise arithmetic and movement on the way? Such values
/// keep the precision that they have.
///
/// `outputs`: which of the graph's outputs count.
std::vector<bool> kept_values(const Graph& graph, const std::vector<bool>& outputs);
/// Of a whole step, all of whose outputs count.
std::vector<bool> kept_values(const Graph& graph);

/// Which outputs of a node's body count, of a node among whose graph's values `kept` are kept: what a loop
/// carries, and what is kept of a parallel loop's results, which stand for those of a step without it. Of other bodies
/// none.
std::vector<bool> kept_outputs(const Node& node, const std::vector<bool>& kept);

/// Is the node one of those that the target wants in f32, or the optimiser's, whose rates and moments are never low?
bool stays_f32(const Node& node, const Target& target);

}  // namespace fullbore
