#pragma once
#include <span>
#include <vector>

#include "fullbore/ir/tensor.h"

namespace fullbore {

/// A loop that was emitted again with more stacked results. It has the operands of the original and
/// computes all that the original computes, so it can stand in the original's place.
struct AugmentedLoop {
  int original = -1;  ///< node indices of one graph
  int augmented = -1;
};

/// Per value of the graph: does it depend on a wanted one by way of floating values and ops with a derivative? What made
/// those before `first_node` is of no interest.
std::vector<bool> varying_values(const Graph& graph, int first_node,
                                 std::span<const Tensor> wanted);

/// The walk behind `backward`, over the nodes of `builder`'s graph from `first_node` to its present
/// end. Appends cotangents to the same graph.
///
/// outputs    floating values; an invalid one of `cotangents` means that nothing flows into it
/// wanted     distinct values; what made those before `first_node` is of no interest
/// augmented  receives one entry for each loop that had to be emitted again
/// -> per wanted value its cotangent, invalid where nothing flows
std::vector<Tensor> pull_back(GraphBuilder& builder, int first_node,
                              std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                              std::span<const Tensor> wanted,
                              std::vector<AugmentedLoop>& augmented);

}  // namespace fullbore
