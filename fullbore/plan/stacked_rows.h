#pragma once
#include "fullbore/ir/graph.h"

namespace fullbore {

/// A graph with what it is the body of.
struct BodyScope {
  const Graph& graph;
  const BodyScope* around = nullptr;  ///< null: of nothing
  int node = -1;                      ///< in `around`, whose body the graph is
};

/// May somebody read rows of a loop's stacked result whose iterations were not made? Then they have to be zeroed.
///
/// Not where all who read it, through views, are loops that slice it and whose count is the number of iterations made: the
/// very same value, or its row of the same iteration where both have been stacked by a loop around and are sliced by
/// another. Nor where gathers alone read it that are told how many rows there are (GatherSumCounts), through views and what
/// loops around carry on. `scope`: of the graph that the loop is in; `node`: the loop; `output`: which of its results.
bool reads_rows_not_made(const BodyScope& scope, int node, int output);

}  // namespace fullbore
