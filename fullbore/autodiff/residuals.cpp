#include "fullbore/autodiff/residuals.h"

#include <algorithm>

#include "fullbore/ir/op_def.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// What a forward value depends on, from the best to the worst reason to compute it again.
enum class Dependence : uint8_t {
  invariant,  ///< captured operands only: moved out of both loops and shared
  cheap,      ///< the index too, by way of elementwise ops and movement
  costly      ///< rows, carried values, or anything expensive
};

// Random draws are composites that no gradient goes through.
bool is_costly(const Node& node) {
  return node.op->is(Tag::contraction) || node.op->is(Tag::region) ||
         (node.op->is(Tag::composite) && !node.op->is(Tag::zero_gradient));
}

std::vector<Dependence> dependences(const JointBody& joint, const LoopShape& shape) {
  const Graph& graph = joint.graph;
  std::vector<Dependence> result(static_cast<size_t>(graph.value_count()), Dependence::costly);
  const auto first_captured = static_cast<size_t>(1 + shape.carried + shape.sliced);
  const size_t body_inputs = first_captured + static_cast<size_t>(shape.captured);
  result[place(graph.inputs()[0].value)] = Dependence::cheap;
  for (size_t i = first_captured; i < body_inputs; ++i)
    result[place(graph.inputs()[i].value)] = Dependence::invariant;
  for (int i = 0; i < joint.forward_nodes; ++i) {
    const Node& node = graph.nodes()[static_cast<size_t>(i)];
    Dependence worst = Dependence::invariant;
    for (Value input : node.inputs) worst = std::max(worst, result[place(input)]);
    if (worst == Dependence::cheap && is_costly(node)) worst = Dependence::costly;
    for (Value output : node.outputs) result[place(output)] = worst;
  }
  return result;
}

// Moving the elements of something no larger: keep the operand rather than the result.
bool is_growth(const Graph& graph, const Node& node) {
  return (node.op->is(Tag::movement) || node.op->is(Tag::identity)) && node.inputs.size() == 1 &&
         graph.type(node.inputs[0]).bytes() <= graph.type(node.outputs[0]).bytes();
}

// `computed_again`: is this node of the forward part computed again?
template <class Again>
Residuals choose(const JointBody& joint, const Graph& body, const LoopShape& shape,
                 const Again& computed_again) {
  const Graph& graph = joint.graph;
  std::vector<bool> needed(static_cast<size_t>(graph.value_count()), false);
  for (Value value : joint.input_cotangents)
    if (value.valid()) needed[place(value)] = true;

  Residuals result;
  result.emitted.resize(graph.nodes().size(), false);
  for (int i = static_cast<int>(graph.nodes().size()) - 1; i >= 0; --i) {
    const Node& node = graph.nodes()[static_cast<size_t>(i)];
    const auto is_needed = [&](Value value) { return needed[place(value)]; };
    if (std::none_of(node.outputs.begin(), node.outputs.end(), is_needed)) continue;
    const bool again = i >= joint.forward_nodes || computed_again(static_cast<size_t>(i));
    result.emitted[static_cast<size_t>(i)] = again;
    if (again)
      for (Value input : node.inputs) needed[place(input)] = true;
    else
      std::copy_if(node.outputs.begin(), node.outputs.end(), std::back_inserter(result.stacked),
                   is_needed);
  }
  result.passed.resize(body.inputs().size(), false);
  for (size_t i = 1; i < result.passed.size(); ++i) {
    const Value input = graph.inputs()[i].value;
    if (!needed[place(input)]) continue;
    if (i <= static_cast<size_t>(shape.carried))
      result.stacked.push_back(input);
    else
      result.passed[i] = true;
  }
  return result;
}

}  // namespace

Residuals choose_residuals(const JointBody& joint, const Graph& body, const LoopShape& shape) {
  const std::vector<Dependence> dependence = dependences(joint, shape);
  return choose(joint, body, shape, [&](size_t index) {
    const Node& node = joint.graph.nodes()[index];
    return node.inputs.empty() || dependence[place(node.outputs[0])] != Dependence::costly ||
           is_growth(joint.graph, node);
  });
}

Residuals choose_segment_residuals(const JointBody& joint, const Graph& body,
                                   const LoopShape& shape, const std::vector<bool>& kept) {
  return choose(joint, body, shape, [&](size_t index) { return !kept[index]; });
}

}  // namespace fullbore
