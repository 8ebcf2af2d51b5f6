#include "fullbore/ir/number_everywhere.h"

#include <algorithm>
#include <cmath>

#include "fullbore/ir/op_handle.h"

namespace fullbore {
namespace {

const OpHandle kConstant("constant"), kBroadcast("broadcast_to"), kTranspose("transpose");

}  // namespace

std::optional<double> number_everywhere(const Graph& graph, Value value) {
  const Node* node = graph.producer_node(value);
  if (!node) return std::nullopt;
  if (node->op == kConstant) {
    const auto& values = node->attributes.get<std::vector<double>>("values");
    const bool equal = !values.empty() && std::all_of(values.begin(), values.end(), [&](double v) {
      return v == values.front() && std::signbit(v) == std::signbit(values.front());
    });
    return equal ? std::optional(values.front()) : std::nullopt;
  }
  const bool rearranged =
      node->op->is(Tag::identity) || node->op == kBroadcast || node->op == kTranspose;
  return rearranged ? number_everywhere(graph, node->inputs[0]) : std::nullopt;
}

}  // namespace fullbore
