#pragma once
#include <cstdint>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// How memory may be lowered.
enum class Means : uint8_t {
  order,         ///< nodes that nobody waits for are put off
  recomputation  ///< and others are executed a second time
};

/// What `order_nodes` and `rematerialize` share. Values are given up where most memory is needed, those first that
/// free most bytes for least work (Kirisame et al. 2020, arXiv:2006.09616, choose alike), until the
/// estimate of the arena (node_order.h) is at most `limit` bytes or no value can be given up that would
/// lower it. A node is executed at most twice. One by one in small graphs; where hundreds are on offer, a
/// share of them at a time (memory_offers.h), and no more than a thousand times, so that the time that
/// it takes is in proportion to the graph.
Graph lower_memory(const Graph& graph, int64_t limit, Means means);

/// The estimate of the arena for a step.
int64_t estimated_arena_bytes(const Graph& graph);

}  // namespace fullbore
