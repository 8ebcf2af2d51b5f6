#pragma once
#include <memory>
#include <span>
#include <vector>

#include "fullbore/device/cuda/executor/launchable_graph.h"

namespace fullbore::cuda {

/// The nodes of a graph, or of the body of a conditional node.
struct GraphLevel {
  std::vector<int> nodes;  ///< of GraphContents, in the order in which the program has them
  std::vector<std::vector<int>>
      follows;  ///< by node: earlier ones, both by their numbers within the level
};

/// Has the driver make all nodes of `contents.graph`, whose own level is the first. Small launches of one code that need not
/// follow one another become one (merged_code.h), each in its level.
void make_nodes(const std::shared_ptr<Context>& context, LaunchKinds& kinds,
                std::span<const GraphLevel> levels, GraphContents& contents);

}  // namespace fullbore::cuda
