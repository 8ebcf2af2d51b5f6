#pragma once
#include <cstdint>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// How memory may be lowered.
enum class Means : uint8_t {
  order,         ///< nodes that nobody waits for are put off
  recomputation  ///< and others are executed a second time
};

/// What `schedule` and `recompute` share. Values are given up one by one, where most memory is needed, the
/// one first that frees most bytes for least work (Kirisame et al. 2020, arXiv:2006.09616, choose alike),
/// until the estimate of the arena (node_order.h) is at most `limit` bytes or no value can be given up
/// that would lower it. A node is executed at most twice.
Graph lower_memory(const Graph& graph, int64_t limit, Means means);

/// The estimate of the arena for a step.
int64_t estimated_arena_bytes(const Graph& graph);

}  // namespace fullbore
