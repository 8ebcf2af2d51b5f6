#include "fullbore/passes/canonicalize/algebraic_simplification.h"

#include "fullbore/passes/canonicalize/simplify_rules.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {

Tensor simplified(GraphBuilder& builder, SimplifyCall call) {
  while (true) {
    Simpler simpler = simplify_elementwise(call);
    if (!simpler) simpler = simplify_movement(call);
    if (!simpler) simpler = simplify_precision(call);
    if (simpler.value.valid()) return simpler.value;
    if (!simpler.call) return builder.emit(*call.op, call.inputs, call.attributes, {})[0];
    call = std::move(*simpler.call);
  }
}

Graph algebraic_simplification(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.outputs.size() != 1 || node.body) {
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return algebraic_simplification(body, target);
                    }));
      continue;
    }
    const Origin origin(rewriter.builder(), node);
    const Tensor result = simplified(
        rewriter.builder(),
        {node.op, rewriter.tensors(node.inputs), node.attributes, graph.type(node.outputs[0])});
    rewriter.map(node, std::span(&result, 1));
  }
  return rewriter.finish();
}

}  // namespace fullbore
