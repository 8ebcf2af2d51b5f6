#include "fullbore/ir/target.h"

#include "fullbore/ir/op_def.h"

namespace fullbore {

bool Target::claims(const Graph& graph, const Node& node) const {
  const auto found = claimed.find(std::string(node.op->name));
  if (found == claimed.end()) return false;
  const std::set<DType>& dtypes = found->second;
  return dtypes.empty() ||
         (!node.inputs.empty() && dtypes.contains(graph.type(node.inputs[0]).dtype));
}

}  // namespace fullbore
