#include "fullbore/ir/loop.h"

#include "fullbore/base/check.h"

namespace fullbore {

LoopShape::LoopShape(const Node& node)
    : LoopShape(node.attributes, static_cast<int>(node.inputs.size()), *node.body) {}

LoopShape::LoopShape(const Attributes& attributes, int node_inputs, const Graph& body)
    : carried(static_cast<int>(attributes.get<int64_t>("carried"))),
      sliced(static_cast<int>(attributes.get<int64_t>("sliced"))),
      iterations(attributes.get<int64_t>("iterations")),
      reverse(attributes.get_or("reverse", false)),
      until(attributes.get_or("until", false)),
      counted(attributes.get_or("counted", false)),
      parallel(attributes.get_or("parallel", false)),
      segments(attributes.get_or("segments", int64_t{1})) {
  captured = node_inputs - first_captured();
  stacked = static_cast<int>(body.outputs().size()) - carried - (until ? 1 : 0);
}

}  // namespace fullbore
