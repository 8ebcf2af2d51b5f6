#include "fullbore/passes/precision/island_values.h"

#include <algorithm>

#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

bool moves(const Node& node) { return node.op->is(Tag::movement) || node.op->is(Tag::identity); }

}  // namespace

IslandValues::IslandValues(const Graph& graph, const std::vector<bool>& read_outputs)
    : read(static_cast<size_t>(graph.value_count()), false) {
  for (size_t i = 0; i < std::min(read_outputs.size(), graph.outputs().size()); ++i)
    if (read_outputs[i]) read[place(graph.outputs()[i].value)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->body) {
      // The first input of a loop's body is the index, and its operands may begin with a count.
      const size_t index = is_loop(*node) ? 1 : 0;
      const size_t first =
          is_loop(*node) ? static_cast<size_t>(LoopShape(*node).first_carried()) : 0;
      const IslandValues body = of_body(*node);
      for (size_t i = index; i < node->body->inputs().size(); ++i)
        if (body.read[place(node->body->inputs()[i].value)])
          read[place(node->inputs[i - index + first])] = true;
      continue;
    }
    const bool passes_on = moves(*node) && std::ranges::any_of(node->outputs, [&](Value output) {
                             return read[place(output)];
                           });
    if (!passes_on && !is_fp32_scope(node->scope)) continue;
    for (const Value operand : node->inputs) read[place(operand)] = true;
  }
}

// What a loop carries is read by the next iteration: once around, what that reads is known.
IslandValues IslandValues::of_body(const Node& node) const {
  const Graph& graph = *node.body;
  std::vector<bool> outputs(graph.outputs().size(), false);
  for (size_t i = 0; i < std::min(outputs.size(), node.outputs.size()); ++i)
    outputs[i] = read[place(node.outputs[i])];
  IslandValues body(graph, outputs);
  if (!is_loop(node)) return body;
  const LoopShape shape(node);
  bool more = false;
  for (size_t i = 0; i < static_cast<size_t>(shape.carried); ++i) {
    if (outputs[i] || !body.read[place(graph.inputs()[i + 1].value)]) continue;
    outputs[i] = more = true;
  }
  return more ? IslandValues(graph, outputs) : body;
}

}  // namespace fullbore
