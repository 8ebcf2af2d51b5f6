#include "fullbore/passes/expand_composites.h"

#include <algorithm>

#include "fullbore/ir/op_def.h"
#include "fullbore/passes/rewriter.h"

namespace fullbore {
namespace {

bool expands(const Graph& graph, const Node& node, const Target& target) {
  return node.op->decompose && !target.claims(graph, node);
}

Graph expand_once(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!expands(graph, node, target)) {
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return expand_composites(body, target);
                    }));
      continue;
    }
    const Origin origin(rewriter.builder(), node);
    const std::vector<Tensor> operands = rewriter.tensors(node.inputs);
    rewriter.map(node, node.op->decompose({operands, node.attributes, origin.loc()}));
  }
  return rewriter.finish();
}

}  // namespace

Graph expand_composites(const Graph& graph, const Target& target) {
  Graph result = expand_once(graph, target);
  // A decomposition may hold composites of its own.
  while (std::any_of(result.nodes().begin(), result.nodes().end(),
                     [&](const Node& node) { return expands(result, node, target); }))
    result = expand_once(result, target);
  return result;
}

}  // namespace fullbore
