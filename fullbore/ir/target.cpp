#include "fullbore/ir/target.h"

namespace fullbore {

bool Target::is_native(const Graph& graph, const Node& node) const {
  const auto found = native_ops.find(node.op);
  if (found == native_ops.end()) return false;
  return found->second.empty() ||
         (!node.inputs.empty() && is_native(*node.op, graph.type(node.inputs[0]).dtype));
}

bool Target::is_native(const OpDef& op, DType dtype) const {
  const auto found = native_ops.find(&op);
  return found != native_ops.end() && (found->second.empty() || found->second.contains(dtype));
}

}  // namespace fullbore
