#include "fullbore/passes/precision/pinned_values.h"

#include <algorithm>
#include <utility>

#include "fullbore/base/text.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Does the operand reach the node's result element by element?
bool passes_through(const Graph& graph, const Node& node, Value operand) {
  if (node.op->is(Tag::movement) || node.op->is(Tag::identity)) return true;
  const bool by_element = node.op->is(Tag::elementwise) || node.op == op::fused;
  return by_element && std::any_of(node.outputs.begin(), node.outputs.end(), [&](Value output) {
           return graph.type(output).elements() == graph.type(operand).elements();
         });
}

}  // namespace

PinnedValues::PinnedValues(const Graph& graph)
    : PinnedValues(graph, std::vector<bool>(graph.outputs().size(), true), SoftmaxValues(graph),
                   IslandValues(graph)) {}

PinnedValues::PinnedValues(const Graph& graph, const std::vector<bool>& outputs,
                           SoftmaxValues softmax, IslandValues islands)
    : softmax_(std::move(softmax)),
      islands_(std::move(islands)),
      kept_(static_cast<size_t>(graph.value_count()), false) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) kept_[place(graph.outputs()[i].value)] = true;
  for (size_t i = 0; i < kept_.size(); ++i)
    if (islands_.read[i]) kept_[i] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(),
                     [&](Value output) { return kept_[place(output)]; }))
      continue;
    for (Value operand : node->inputs)
      if (passes_through(graph, *node, operand)) kept_[place(operand)] = true;
  }
  for (size_t i = 0; i < kept_.size(); ++i)
    if (softmax_.pinned[i]) kept_[i] = true;
}

PinnedValues PinnedValues::of_body(const Node& node) const {
  std::vector<bool> outputs(node.body->outputs().size(), false);
  if (!is_loop(node))
    return {*node.body, outputs, SoftmaxValues(*node.body), islands_.of_body(node)};
  const LoopShape shape(node);
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] =
        i < static_cast<size_t>(shape.carried) || (shape.parallel && (*this)[node.outputs[i]]);
  return {*node.body, outputs, softmax_.of_body(node), islands_.of_body(node)};
}

namespace {

bool is_wanted_f32(const Node& node, const Target& target) {
  if (node.scope == "optimizer" || node.scope.starts_with("optimizer.")) return true;
  return std::any_of(
      target.fp32_scopes.begin(), target.fp32_scopes.end(),
      [&](const std::string& pattern) { return pattern_distance(pattern, node.scope) == 0; });
}

}  // namespace

bool stays_f32(const Node& node, const Target& target) {
  return is_wanted_f32(node, target) || is_fp32_scope(node.scope);
}

bool makes_f32(const Graph& graph, Value value, const Target& target) {
  const Node* const maker = graph.producer_node(value);
  if (!maker) return false;
  if (is_wanted_f32(*maker, target)) return true;
  if (maker->body) {
    const auto place =
        static_cast<size_t>(std::ranges::find(maker->outputs, value) - maker->outputs.begin());
    const auto& outputs = maker->body->outputs();
    return place < outputs.size() && makes_f32(*maker->body, outputs[place].value, target);
  }
  const bool moves = maker->op->is(Tag::movement) || maker->op->is(Tag::identity);
  if (moves && !maker->inputs.empty()) return makes_f32(graph, maker->inputs[0], target);
  return is_fp32_scope(maker->scope);
}

}  // namespace fullbore
