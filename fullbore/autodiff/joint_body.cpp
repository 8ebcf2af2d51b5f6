#include "fullbore/autodiff/joint_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fullbore/autodiff/pull_back.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

// Moves each augmented loop to where its original stands, which it replaces: in a body, unlike in a
// graph that others are still writing, that can be done at once, and what the loop stacks then
// belongs to the forward part, whose results the outer loop can keep.
class Promotion {
 public:
  Promotion(const Graph& from, const std::vector<AugmentedLoop>& augmented) : to_(from.name()) {
    for (const AugmentedLoop& loop : augmented) replacement_[loop.original] = loop.augmented;
    std::vector<bool> moved(from.nodes().size(), false);
    for (const AugmentedLoop& loop : augmented) moved[static_cast<size_t>(loop.augmented)] = true;
    values_.resize(static_cast<size_t>(from.value_count()));
    for (const Graph::Input& input : from.inputs())
      values_[place(input.value)] = to_.add_input_like(input, from.type(input.value));
    for (size_t i = 0; i < from.nodes().size(); ++i) {
      if (moved[i]) continue;
      const Node& node = from.nodes()[i];
      const auto found = replacement_.find(static_cast<int>(i));
      if (found == replacement_.end())
        map(node, copy(node));
      else
        replace(node, from.nodes()[static_cast<size_t>(found->second)]);
    }
  }

  Value operator[](Value value) const { return value.valid() ? values_[place(value)] : value; }
  Graph take() { return std::move(to_); }

 private:
  std::vector<Value> copy(const Node& node) {
    std::vector<Value> inputs;
    for (Value input : node.inputs) inputs.push_back(values_[place(input)]);
    return to_.add_node_like(node, *node.op, std::move(inputs), node.attributes, node.body).outputs;
  }
  void map(const Node& node, const std::vector<Value>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) values_[place(node.outputs[i])] = outputs[i];
  }
  // The augmented loop's results are the original's with more stacked ones before the number of
  // iterations, if there is one.
  void replace(const Node& original, const Node& augmented) {
    const std::vector<Value> outputs = copy(augmented);
    map(augmented, outputs);
    map(original,
        {outputs.begin(), outputs.begin() + static_cast<int64_t>(original.outputs.size())});
    if (original.attributes.get_or("until", false))
      values_[place(original.outputs.back())] = outputs.back();
  }

  Graph to_;
  std::map<int, int> replacement_;
  std::vector<Value> values_;
};

}  // namespace

JointBody differentiate_body(const Graph& body, const std::vector<bool>& flows,
                             const std::vector<bool>& wanted) {
  GraphBuilder builder(body.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : body.inputs())
    inputs.push_back(builder.input(input.name, Role::local, body.type(input.value)));
  std::vector<Tensor> cotangents(body.outputs().size());
  for (size_t i = 0; i < cotangents.size(); ++i)
    if (flows[i])
      cotangents[i] = builder.input(fmt::format("cotangent{}", i), Role::local,
                                    body.type(body.outputs()[i].value));
  const std::vector<Tensor> outputs = inline_graph(builder, body, inputs);
  JointBody joint;
  joint.forward_nodes = static_cast<int>(builder.graph().nodes().size());

  std::vector<Tensor> asked;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (wanted[i]) asked.push_back(inputs[i]);
  std::vector<AugmentedLoop> augmented;
  const std::vector<Tensor> found = pull_back(builder, 0, outputs, cotangents, asked, augmented);

  Promotion promotion(builder.graph(), augmented);
  for (const Tensor& tensor : outputs) joint.outputs.push_back(promotion[tensor.value()]);
  for (const Tensor& tensor : cotangents)
    joint.output_cotangents.push_back(promotion[tensor.value()]);
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    joint.input_cotangents.push_back(wanted[i] ? promotion[found[next++].value()] : Value{});
  joint.graph = promotion.take();
  return joint;
}

namespace {

// The inputs of a loop's body, of what its operands are; the index is the loop's own.
std::vector<bool> of_body(const Node& loop, const std::vector<bool>& operands) {
  std::vector<bool> inputs = {false};
  inputs.insert(inputs.end(), operands.begin() + LoopShape(loop).first_carried(), operands.end());
  return inputs;
}

// Of a loop's results: what varies, in one iteration or by way of the carried values in a later one.
std::vector<bool> varying_results(const Node& loop, const std::vector<bool>& operands) {
  std::vector<bool> inputs = of_body(loop, operands), outputs;
  const auto carried = static_cast<size_t>(LoopShape(loop).carried);
  for (bool changed = true; changed;) {
    outputs = varying_outputs(*loop.body, inputs, true);
    changed = false;
    for (size_t c = 0; c < carried; ++c) {
      changed |= outputs[c] && !inputs[1 + c];
      inputs[1 + c] = outputs[c] = inputs[1 + c] || outputs[c];
    }
  }
  outputs.resize(loop.outputs.size());
  return outputs;
}

// Of a loop's operands: what reaches one of these results.
std::vector<bool> reached_operands(const Node& loop, std::vector<bool> results) {
  const LoopShape shape(loop);
  results.resize(loop.body->outputs().size());
  if (shape.until) results.back() = false;
  std::vector<bool> inputs;
  for (bool changed = true; changed;) {
    inputs = reached_inputs(*loop.body, results, true);
    changed = false;
    for (size_t c = 0; c < static_cast<size_t>(shape.carried); ++c) {
      changed |= inputs[1 + c] && !results[c];
      results[c] = inputs[1 + c] = inputs[1 + c] || results[c];
    }
  }
  std::vector<bool> operands(static_cast<size_t>(shape.first_carried()), false);
  operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
  return operands;
}

}  // namespace

std::vector<bool> varying_outputs(const Graph& body, const std::vector<bool>& inputs,
                                  bool through_loops) {
  std::vector<bool> varies(static_cast<size_t>(body.value_count()), false);
  const auto is_set = [&](Value value) { return varies[place(value)]; };
  for (size_t i = 0; i < inputs.size(); ++i) varies[place(body.inputs()[i].value)] = inputs[i];
  for (const Node& node : body.nodes()) {
    if (node.op->is(Tag::zero_gradient) ||
        std::none_of(node.inputs.begin(), node.inputs.end(), is_set))
      continue;
    std::vector<bool> results(node.outputs.size(), true);
    if (through_loops && is_loop(node)) {
      std::vector<bool> operands;
      for (Value input : node.inputs) operands.push_back(is_set(input));
      results = varying_results(node, operands);
    }
    for (size_t i = 0; i < results.size(); ++i)
      varies[place(node.outputs[i])] = results[i] && is_floating(body.type(node.outputs[i]).dtype);
  }
  std::vector<bool> result;
  for (const Graph::Output& output : body.outputs()) result.push_back(is_set(output.value));
  return result;
}

std::vector<bool> reached_inputs(const Graph& body, const std::vector<bool>& outputs,
                                 bool through_loops) {
  std::vector<bool> reached(static_cast<size_t>(body.value_count()), false);
  const auto is_set = [&](Value value) { return reached[place(value)]; };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) reached[place(body.outputs()[i].value)] = true;
  for (auto node = body.nodes().rbegin(); node != body.nodes().rend(); ++node) {
    if (node->op->is(Tag::zero_gradient) ||
        std::none_of(node->outputs.begin(), node->outputs.end(), is_set))
      continue;
    std::vector<bool> operands(node->inputs.size(), true);
    if (through_loops && is_loop(*node)) {
      std::vector<bool> results;
      for (Value output : node->outputs) results.push_back(is_set(output));
      operands = reached_operands(*node, results);
    }
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i] && is_floating(body.type(node->inputs[i]).dtype))
        reached[place(node->inputs[i])] = true;
  }
  std::vector<bool> result;
  for (const Graph::Input& input : body.inputs()) result.push_back(is_set(input.value));
  return result;
}

}  // namespace fullbore
