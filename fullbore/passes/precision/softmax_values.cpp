#include "fullbore/passes/precision/softmax_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

size_t place(Value value) { return static_cast<size_t>(value.id); }

bool is_fused(const Node& node) { return node.body && !is_loop(node); }

bool computes(const Node& node, ScalarOp op) {
  return node.op->is(Tag::elementwise) && node.op->scalar == op;
}

// Does the result hold the operand's elements, moved or in another dtype?
bool moves(const Node& node) {
  return node.op->is(Tag::movement) || node.op->is(Tag::identity) || computes(node, ScalarOp::cast);
}

/// The graph with its fused nodes written out, and where each value went.
struct Flat {
  Graph graph;
  std::vector<Value> now;
};

Flat flattened(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (is_fused(node))
      rewriter.map(node,
                   inline_graph(rewriter.builder(), *node.body, rewriter.tensors(node.inputs)));
    else
      rewriter.copy(node);
  }
  Flat flat;
  for (int id = 0; id < graph.value_count(); ++id) flat.now.push_back(rewriter[Value{id}]);
  flat.graph = rewriter.finish();
  return flat;
}

// The operand of a loop that the body's input, not the index, stands for.
Value operand_of(const Node& loop, size_t input) {
  return loop.inputs[input - 1 + static_cast<size_t>(LoopShape(loop).first_carried())];
}

std::vector<bool> weights_into(const Node& loop, const std::vector<bool>& weights) {
  std::vector<bool> into(loop.body->inputs().size(), false);
  for (size_t i = 1; i < into.size(); ++i) into[i] = weights[place(operand_of(loop, i))];
  return into;
}

std::vector<bool> pinned_from(const Node& loop, const std::vector<bool>& pinned) {
  std::vector<bool> from(loop.body->outputs().size(), false);
  for (size_t i = 0; i < std::min(from.size(), loop.outputs.size()); ++i)
    from[i] = pinned[place(loop.outputs[i])];
  return from;
}

/// Of a graph without fused nodes.
class Analysis {
 public:
  Analysis(const Graph& graph, const std::vector<bool>& weight_inputs,
           const std::vector<bool>& pinned_outputs)
      : graph_(graph), readers_(static_cast<size_t>(graph.value_count())) {
    weights.assign(readers_.size(), false);
    pinned.assign(readers_.size(), false);
    for (const Node& node : graph.nodes())
      for (const Value operand : node.inputs) readers_[place(operand)].push_back(&node);
    for (size_t i = 0; i < weight_inputs.size(); ++i)
      if (weight_inputs[i]) weights[place(graph.inputs()[i].value)] = true;
    for (size_t i = 0; i < pinned_outputs.size(); ++i)
      if (pinned_outputs[i]) pinned[place(graph.outputs()[i].value)] = true;
    for (const Node& node : graph.nodes()) find_weights(node);
    for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) pin(*node);
  }

  std::vector<bool> weights;
  std::vector<bool> pinned;

 private:
  bool is_float(Value value) const { return is_floating(graph_.type(value).dtype); }

  Value before_moves(Value value) const {
    const Node* maker = graph_.producer_node(value);
    while (maker && !maker->inputs.empty() && moves(*maker)) {
      value = maker->inputs[0];
      maker = graph_.producer_node(value);
    }
    return value;
  }
  // Repeated along an axis: a number of each row.
  bool is_repeated(Value value) const {
    return graph_.type(before_moves(value)).elements() < graph_.type(value).elements();
  }

  // Does a difference make the exponent, moved, scaled or masked at most?
  bool is_difference(Value value) const {
    std::set<Value> seen;
    return is_difference(value, seen);
  }
  bool is_difference(Value value, std::set<Value>& seen) const {
    const Node* const maker = graph_.producer_node(value);
    if (!maker || !seen.insert(value).second) return false;
    if (computes(*maker, ScalarOp::sub)) return true;
    if (computes(*maker, ScalarOp::add))
      return std::ranges::any_of(maker->inputs, [&](Value operand) {
        const Node* const source = graph_.producer_node(before_moves(operand));
        return source && computes(*source, ScalarOp::neg);
      });
    const bool scales = moves(*maker) || computes(*maker, ScalarOp::mul) ||
                        computes(*maker, ScalarOp::div) || computes(*maker, ScalarOp::select) ||
                        computes(*maker, ScalarOp::minimum) || computes(*maker, ScalarOp::maximum);
    return scales && std::ranges::any_of(maker->inputs, [&](Value operand) {
             return is_float(operand) && is_difference(operand, seen);
           });
  }

  bool is_summed(Value value) const {
    return std::ranges::any_of(readers_[place(value)], [&](const Node* reader) {
      if (reader->op->is(Tag::reduction)) return reader->op->scalar == ScalarOp::add;
      return (moves(*reader) || computes(*reader, ScalarOp::select)) &&
             is_summed(reader->outputs[0]);
    });
  }

  void find_weights(const Node& node) {
    if (is_loop(node)) {
      const SoftmaxValues body(*node.body, weights_into(node, weights), {});
      for (size_t i = 0; i < std::min(node.outputs.size(), node.body->outputs().size()); ++i)
        weights[place(node.outputs[i])] = body.weights[place(node.body->outputs()[i].value)];
      return;
    }
    if (node.outputs.size() != 1 || node.inputs.empty()) return;
    const auto is_weight = [&](Value operand) { return weights[place(operand)]; };
    bool found = false;
    if (computes(node, ScalarOp::exp))
      found = is_difference(node.inputs[0]) || is_summed(node.outputs[0]);
    else if (computes(node, ScalarOp::div))
      found = is_weight(node.inputs[0]);
    else if (moves(node) || computes(node, ScalarOp::mul) || computes(node, ScalarOp::select))
      found = std::ranges::any_of(node.inputs, is_weight);
    weights[place(node.outputs[0])] = found;
  }

  void pin(const Node& node) {
    if (is_loop(node)) {
      const SoftmaxValues body(*node.body, weights_into(node, weights), pinned_from(node, pinned));
      for (size_t i = 1; i < node.body->inputs().size(); ++i)
        if (body.pinned[place(node.body->inputs()[i].value)])
          pinned[place(operand_of(node, i))] = true;
      return;
    }
    if (computes(node, ScalarOp::exp)) {
      if (weights[place(node.outputs[0])]) pinned[place(node.inputs[0])] = true;
      return;
    }
    if (computes(node, ScalarOp::mul)) pin_slopes(node);
    if (!moves(node) && !node.op->is(Tag::elementwise)) return;
    if (std::ranges::any_of(node.outputs, [&](Value output) { return pinned[place(output)]; }))
      for (const Value operand : node.inputs)
        if (is_float(operand)) pinned[place(operand)] = true;
  }

  // w (a - sum(w a)): the gradient of a softmax, also where the sum is known from elsewhere.
  void pin_slopes(const Node& product) {
    for (size_t i = 0; i < 2; ++i) {
      const Node* difference = graph_.producer_node(product.inputs[1 - i]);
      while (difference && !difference->inputs.empty() && moves(*difference))
        difference = graph_.producer_node(difference->inputs[0]);
      if (!difference ||
          (!computes(*difference, ScalarOp::sub) && !computes(*difference, ScalarOp::add)))
        continue;
      const bool first = is_repeated(difference->inputs[0]);
      if (first == is_repeated(difference->inputs[1])) continue;
      const Value slopes = difference->inputs[first ? 1 : 0];
      const Value row = before_moves(difference->inputs[first ? 0 : 1]);
      if (weights[place(product.inputs[i])] || sums_product(row, product.inputs[i], slopes))
        pinned[place(slopes)] = true;
    }
  }

  bool sums_product(Value row, Value a, Value b) const {
    const Node* const sum = graph_.producer_node(row);
    if (!sum || !sum->op->is(Tag::reduction)) return false;
    const Node* const product = graph_.producer_node(sum->inputs[0]);
    return product && computes(*product, ScalarOp::mul) &&
           ((product->inputs[0] == a && product->inputs[1] == b) ||
            (product->inputs[0] == b && product->inputs[1] == a));
  }

  const Graph& graph_;
  std::vector<std::vector<const Node*>> readers_;  // per value
};

}  // namespace

SoftmaxValues::SoftmaxValues(const Graph& graph, const std::vector<bool>& weight_inputs,
                             const std::vector<bool>& pinned_outputs) {
  if (std::ranges::none_of(graph.nodes(), is_fused)) {
    Analysis found(graph, weight_inputs, pinned_outputs);
    weights = std::move(found.weights);
    pinned = std::move(found.pinned);
    return;
  }
  const Flat flat = flattened(graph);
  const Analysis found(flat.graph, weight_inputs, pinned_outputs);
  for (const Value value : flat.now) {
    weights.push_back(value.valid() && found.weights[place(value)]);
    pinned.push_back(value.valid() && found.pinned[place(value)]);
  }
}

SoftmaxValues SoftmaxValues::of_body(const Node& loop) const {
  return {*loop.body, weights_into(loop, weights), pinned_from(loop, pinned)};
}

}  // namespace fullbore
