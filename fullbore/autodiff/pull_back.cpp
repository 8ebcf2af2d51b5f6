#include "fullbore/autodiff/pull_back.h"

#include <algorithm>
#include <map>

#include "fullbore/autodiff/loop_gradient.h"
#include "fullbore/base/check.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

class Walk {
 public:
  Walk(GraphBuilder& builder, int first_node, std::vector<AugmentedLoop>& augmented)
      : builder_(builder),
        first_(first_node),
        end_(static_cast<int>(builder.graph().nodes().size())),
        augmented_(augmented) {}

  std::vector<Tensor> run(std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                          std::span<const Tensor> wanted) {
    varies_ = varying_values(builder_.graph(), first_, wanted);
    for (size_t i = 0; i < outputs.size(); ++i) flow(outputs[i].value(), cotangents[i]);
    for (int index = end_ - 1; index >= first_; --index) visit(index);
    std::vector<Tensor> results;
    for (const Tensor& tensor : wanted) results.push_back(cotangent(tensor.value()));
    return results;
  }

 private:
  bool varies(Value value) const { return varies_[static_cast<size_t>(value.id)]; }

  Tensor cotangent(Value value) const {
    const auto found = cotangents_.find(value);
    return found == cotangents_.end() ? Tensor{} : found->second;
  }

  void flow(Value value, Tensor addend) {
    if (!addend.valid() || !varies(value)) return;
    FB_CHECK(addend.type() == builder_.graph().type(value), "cotangent {} of a value {}",
             addend.type().text(), builder_.graph().type(value).text());
    Tensor& sum = cotangents_[value];
    sum = sum.valid() ? add(sum, addend) : addend;
  }

  void visit(int index) {
    const Node& place = builder_.graph().nodes()[static_cast<size_t>(index)];
    // Where an op has no derivative the walk ends, even if its result is itself wanted.
    if (place.op->is(Tag::zero_gradient)) return;
    if (std::none_of(place.outputs.begin(), place.outputs.end(),
                     [&](Value output) { return cotangents_.contains(output); }))
      return;
    const Node node = place;  // a copy: the graph grows
    std::vector<bool> wanted;
    for (Value input : node.inputs) wanted.push_back(varies(input));
    if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return;

    const Origin origin(builder_, node);
    const std::vector<Tensor> inputs = tensors(node.inputs);
    const std::vector<Tensor> outputs = tensors(node.outputs);
    std::vector<Tensor> flowing;
    for (Value output : node.outputs) flowing.push_back(cotangent(output));

    std::vector<Tensor> results;
    if (node.op->vjp) {
      results = node.op->vjp({inputs, outputs, flowing, wanted, node.attributes, origin.loc()});
    } else if (node.body && is_loop(node)) {
      results = loop_gradient(builder_, index, flowing, wanted, augmented_);
    } else {
      const auto start = static_cast<int>(builder_.graph().nodes().size());
      const std::vector<Tensor> emitted =
          node.body ? inline_graph(builder_, *node.body, inputs) : decompose(node, inputs, origin);
      results = through(start, emitted, flowing, inputs, wanted);
    }
    FB_CHECK(results.size() == inputs.size(), "{} cotangents for {} operands of {}", results.size(),
             inputs.size(), node.op->name);
    for (size_t i = 0; i < results.size(); ++i)
      if (wanted[i]) flow(node.inputs[i], results[i]);
  }

  std::vector<Tensor> decompose(const Node& node, const std::vector<Tensor>& inputs,
                                const Origin& origin) {
    FB_CHECK(node.op->decompose, "op '{}' has no derivative", node.op->name);
    return node.op->decompose({inputs, node.attributes, origin.loc()});
  }

  // The forward node stays as it is; what was emitted from `start` on computes the same once more,
  // only to be differentiated. What is equal or unused is removed by passes.
  std::vector<Tensor> through(int start, const std::vector<Tensor>& outputs,
                              const std::vector<Tensor>& flowing, const std::vector<Tensor>& inputs,
                              const std::vector<bool>& wanted) {
    std::vector<Tensor> distinct;
    std::vector<size_t> place;  // of each distinct operand: the first input that it is
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool seen = std::any_of(distinct.begin(), distinct.end(), [&](const Tensor& other) {
        return other.value() == inputs[i].value();
      });
      if (!wanted[i] || seen) continue;
      distinct.push_back(inputs[i]);
      place.push_back(i);
    }
    const std::vector<Tensor> found =
        pull_back(builder_, start, outputs, flowing, distinct, augmented_);
    std::vector<Tensor> results(inputs.size());
    for (size_t i = 0; i < found.size(); ++i) results[place[i]] = found[i];
    return results;
  }

  std::vector<Tensor> tensors(const std::vector<Value>& values) {
    std::vector<Tensor> result;
    for (Value value : values) result.emplace_back(&builder_, value);
    return result;
  }

  GraphBuilder& builder_;
  int first_;
  int end_;
  std::vector<AugmentedLoop>& augmented_;
  std::vector<bool> varies_;
  std::map<Value, Tensor> cotangents_;
};

}  // namespace

std::vector<bool> varying_values(const Graph& graph, int first_node,
                                 std::span<const Tensor> wanted) {
  std::vector<bool> varies(static_cast<size_t>(graph.value_count()), false);
  const auto is_varying = [&](Value value) { return varies[static_cast<size_t>(value.id)]; };
  for (const Tensor& tensor : wanted)
    varies[static_cast<size_t>(tensor.value().id)] = is_floating(tensor.dtype());
  for (size_t index = static_cast<size_t>(first_node); index < graph.nodes().size(); ++index) {
    const Node& node = graph.nodes()[index];
    if (node.op->is(Tag::zero_gradient)) continue;
    if (std::ranges::none_of(node.inputs, is_varying)) continue;
    for (const Value output : node.outputs)
      if (is_floating(graph.type(output).dtype)) varies[static_cast<size_t>(output.id)] = true;
  }
  return varies;
}

std::vector<Tensor> pull_back(GraphBuilder& builder, int first_node,
                              std::span<const Tensor> outputs, std::span<const Tensor> cotangents,
                              std::span<const Tensor> wanted,
                              std::vector<AugmentedLoop>& augmented) {
  return Walk(builder, first_node, augmented).run(outputs, cotangents, wanted);
}

}  // namespace fullbore
