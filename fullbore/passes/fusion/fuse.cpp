#include "fullbore/passes/fusion/fuse.h"

#include "fullbore/passes/canonicalize/dead_code_elimination.h"
#include "fullbore/passes/fusion/fused_bodies.h"

namespace fullbore {
namespace {

Graph fuse_live(const Graph& graph) {
  return write_groups(graph, FusionGroups(graph), nullptr, fuse_live);
}

}  // namespace

// A dead reader would keep values from vanishing into groups.
Graph fuse(const Graph& graph, const Target& target) {
  return fuse_live(dead_code_elimination(graph, target));
}

}  // namespace fullbore
