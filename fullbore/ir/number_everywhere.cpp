#include "fullbore/ir/number_everywhere.h"

#include <algorithm>
#include <cmath>

#include "fullbore/ir/op_def.h"

namespace fullbore {

std::optional<double> number_everywhere(const Graph& graph, Value value) {
  const Node* node = graph.producer_node(value);
  if (!node) return std::nullopt;
  if (node->op->name == "constant") {
    const auto& values = node->attributes.get<std::vector<double>>("values");
    const bool equal = !values.empty() && std::all_of(values.begin(), values.end(), [&](double v) {
      return v == values.front() && std::signbit(v) == std::signbit(values.front());
    });
    return equal ? std::optional(values.front()) : std::nullopt;
  }
  const bool rearranged = node->op->is(Tag::identity) || node->op->name == "broadcast_to" ||
                          node->op->name == "transpose";
  return rearranged ? number_everywhere(graph, node->inputs[0]) : std::nullopt;
}

}  // namespace fullbore
