#include "fullbore/passes/simplify.h"

#include "fullbore/passes/rewriter.h"
#include "fullbore/passes/simplify_rules.h"

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

Graph simplify(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.outputs.size() != 1 || node.body) {
      rewriter.copy(
          node, rewritten_body(node, [&](const Graph& body) { return simplify(body, target); }));
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
