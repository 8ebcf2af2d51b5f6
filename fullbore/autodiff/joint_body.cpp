#include "fullbore/autodiff/joint_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fullbore/autodiff/pull_back.h"
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

std::vector<bool> varying_outputs(const Graph& body, const std::vector<bool>& inputs) {
  std::vector<bool> varies(static_cast<size_t>(body.value_count()), false);
  const auto is_set = [&](Value value) { return varies[place(value)]; };
  for (size_t i = 0; i < inputs.size(); ++i) varies[place(body.inputs()[i].value)] = inputs[i];
  for (const Node& node : body.nodes())
    if (!node.op->is(Tag::zero_gradient) &&
        std::any_of(node.inputs.begin(), node.inputs.end(), is_set))
      for (Value output : node.outputs)
        varies[place(output)] = is_floating(body.type(output).dtype);
  std::vector<bool> result;
  for (const Graph::Output& output : body.outputs()) result.push_back(is_set(output.value));
  return result;
}

std::vector<bool> reached_inputs(const Graph& body, const std::vector<bool>& outputs) {
  std::vector<bool> reached(static_cast<size_t>(body.value_count()), false);
  const auto is_set = [&](Value value) { return reached[place(value)]; };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) reached[place(body.outputs()[i].value)] = true;
  for (auto node = body.nodes().rbegin(); node != body.nodes().rend(); ++node)
    if (!node->op->is(Tag::zero_gradient) &&
        std::any_of(node->outputs.begin(), node->outputs.end(), is_set))
      for (Value input : node->inputs)
        if (is_floating(body.type(input).dtype)) reached[place(input)] = true;
  std::vector<bool> result;
  for (const Graph::Input& input : body.inputs()) result.push_back(is_set(input.value));
  return result;
}

}  // namespace fullbore
