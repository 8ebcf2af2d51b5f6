#include "fullbore/passes/memory/rematerialize.h"

#include "fullbore/passes/memory/memory_lowering.h"

namespace fullbore {

Graph rematerialize(const Graph& graph, const Target& target) {
  const bool limited = target.recompute == Recompute::automatic && target.arena_bytes > 0;
  if (target.recompute != Recompute::full && !limited) return graph;
  return lower_memory(graph, limited ? target.arena_bytes : 0, Means::recomputation);
}

}  // namespace fullbore
