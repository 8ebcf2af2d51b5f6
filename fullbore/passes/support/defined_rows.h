#pragma once
#include <span>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// The same graph, whose gather_sums make all rows: those beyond GatherSumCounts, which nobody needs, hold zeros instead
/// of what was in their memory. For whoever looks at values whole.
Graph with_defined_rows(const Graph& graph);

/// Of one node: its operands without the counts.
std::vector<Tensor> operands_of_all_rows(const Node& node, std::vector<Tensor> operands);

}  // namespace fullbore
