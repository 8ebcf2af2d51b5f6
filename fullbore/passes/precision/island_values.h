#pragma once
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// The values of a graph that islands of f32 (Fp32Scope) read, moved at most, on this side of a loop's border or on the
/// other: none of them is to be rounded. Fused nodes are looked into.
struct IslandValues {
  std::vector<bool> read;  ///< per value

  /// Of a body, of whose outputs the graph around it says which are read so; empty: of none.
  explicit IslandValues(const Graph& graph, const std::vector<bool>& read_outputs = {});

  /// Of the body of one of the graph's nodes.
  IslandValues of_body(const Node& node) const;
};

}  // namespace fullbore
