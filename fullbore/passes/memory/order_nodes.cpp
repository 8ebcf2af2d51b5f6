#include "fullbore/passes/memory/order_nodes.h"

#include <utility>

#include "fullbore/passes/memory/memory_lowering.h"

namespace fullbore {

// A new order may leave room for a better one: until there is none, so that twice is once.
Graph order_nodes(const Graph& graph, const Target&) {
  Graph best = graph;
  for (int64_t bytes = estimated_arena_bytes(best);;) {
    Graph next = lower_memory(best, 0, Means::order);
    const int64_t next_bytes = estimated_arena_bytes(next);
    if (next_bytes >= bytes) return best;
    best = std::move(next);
    bytes = next_bytes;
  }
}

}  // namespace fullbore
