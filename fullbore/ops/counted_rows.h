#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// Zeros in the first `count` rows of `type` [C, ...], of a number's dtype; the others are undefined and never written, as
/// those of a gather_sum that is told how many there are (GatherSumCounts): what so many rows of a large store begin with
/// takes their time and their memory, not the store's. For readers that look at no others. count: i64 [].
Tensor zero_rows(GraphBuilder& builder, const TensorType& type, Tensor count,
                 SourceLoc loc = SourceLoc::here());

/// Is the node a gather_sum with counts? It touches neither rows of its first operand nor of its result beyond them.
bool has_counted_rows(const Node& node);
/// Such a node as zero_rows() makes.
bool makes_zero_rows(const Graph& graph, const Node& node);

}  // namespace fullbore
