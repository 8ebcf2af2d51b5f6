#pragma once
#include <span>
#include <vector>

namespace fullbore::cuda {

/// A node of a graph as merging sees it.
struct MergeableNode {
  int kind = -1;                 ///< equal for those that can be one; -1: for none
  int most = 1;                  ///< nodes of its kind that can be one
  std::span<const int> follows;  ///< earlier nodes
};

/// Nodes that become one each, in an order in which all follow earlier ones. Nodes become one if none of them follows another
/// by whichever way, also through nodes that became one; the longest chain of nodes does not get longer. What can wait does,
/// for more of its kind to become one with.
std::vector<std::vector<int>> merge_nodes(std::span<const MergeableNode> nodes);

}  // namespace fullbore::cuda
