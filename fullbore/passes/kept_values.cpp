#include "fullbore/passes/kept_values.h"

#include <algorithm>

#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Does the operand reach the node's result element by element?
bool passes_through(const Graph& graph, const Node& node, Value operand) {
  if (node.op->is(Tag::movement) || node.op->is(Tag::identity)) return true;
  const bool by_element = node.op->is(Tag::elementwise) || node.op->name == "fused";
  return by_element && std::any_of(node.outputs.begin(), node.outputs.end(), [&](Value output) {
           return graph.type(output).elements() == graph.type(operand).elements();
         });
}

}  // namespace

std::vector<bool> kept_values(const Graph& graph, int carried) {
  std::vector<bool> kept(static_cast<size_t>(graph.value_count()), false);
  const size_t roots = carried < 0 ? graph.outputs().size() : static_cast<size_t>(carried);
  for (size_t i = 0; i < roots; ++i) kept[place(graph.outputs()[i].value)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
                     [&](Value output) { return kept[place(output)]; }))
      continue;
    for (Value operand : node->inputs)
      if (passes_through(graph, *node, operand)) kept[place(operand)] = true;
  }
  return kept;
}

bool stays_f32(const Node& node, const Target& target) {
  if (node.scope == "optimizer" || node.scope.starts_with("optimizer.")) return true;
  return std::any_of(
      target.fp32_scopes.begin(), target.fp32_scopes.end(),
      [&](const std::string& pattern) { return pattern_distance(pattern, node.scope) == 0; });
}

}  // namespace fullbore
