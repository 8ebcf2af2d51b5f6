#include "fullbore/passes/precision/narrowed.h"

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

Tensor narrowed(Tensor x, DType dtype) {
  if (x.dtype() == dtype) return x;
  GraphBuilder& builder = x.builder();
  const Graph& graph = builder.graph();
  const Node* const maker = graph.producer_node(x.value());
  if (maker && maker->op == op::cast && graph.type(maker->inputs[0]).dtype == dtype)
    return {&builder, maker->inputs[0]};
  for (const Node& node : graph.nodes())
    if (node.op == op::cast && node.inputs[0] == x.value() &&
        graph.type(node.outputs[0]).dtype == dtype)
      return {&builder, node.outputs[0]};
  return cast(x, dtype);
}

}  // namespace fullbore
