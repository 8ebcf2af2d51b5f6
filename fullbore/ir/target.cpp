#include "fullbore/ir/target.h"

namespace fullbore {

bool Target::claims(const Graph& graph, const Node& node) const {
  const auto found = claimed.find(node.op);
  if (found == claimed.end()) return false;
  return found->second.empty() ||
         (!node.inputs.empty() && claims(*node.op, graph.type(node.inputs[0]).dtype));
}

bool Target::claims(const OpDef& op, DType dtype) const {
  const auto found = claimed.find(&op);
  return found != claimed.end() && (found->second.empty() || found->second.contains(dtype));
}

}  // namespace fullbore
