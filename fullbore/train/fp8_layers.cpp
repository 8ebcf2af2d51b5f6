#include "fullbore/train/fp8_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "fullbore/base/text.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/optim/optimizer.h"

namespace fullbore {
namespace {

size_t at(Value value) { return static_cast<size_t>(value.id); }

bool transposes(const Node& node, const char* which) { return node.attributes.get<bool>(which); }

bool moves(const Node& node) {
  return node.op == op::cast || node.op->is(Tag::movement) || node.op->is(Tag::identity);
}

/// The parameter that an input stands for; "" if none. Averages stand for what they are of.
std::string parameter_of(const Graph::Input& input) {
  if (input.role == Role::parameter) return input.name;
  const std::string suffix = ema_name("");
  if (input.role == Role::ema && input.name.ends_with(suffix))
    return input.name.substr(0, input.name.size() - suffix.size());
  return "";
}

void extend(const Graph& graph, WeightValues& weights) {
  for (const Node& node : graph.nodes()) {
    bool trained = false;
    for (const Value input : node.inputs) trained = trained || weights.trained[at(input)];
    const bool large = !node.inputs.empty() && moves(node) && weights.large[at(node.inputs[0])];
    for (const Value output : node.outputs) {
      weights.trained[at(output)] = trained;
      weights.large[at(output)] = large;
    }
    if (node.op != op::cast) continue;
    const auto found = weights.matrices.find(node.inputs[0]);
    if (found != weights.matrices.end() && is_floating(graph.type(node.outputs[0]).dtype))
      weights.matrices.emplace(node.outputs[0], found->second);
  }
}

WeightValues empty(const Graph& graph) {
  const auto count = static_cast<size_t>(graph.value_count());
  return {.matrices = {},
          .large = std::vector<bool>(count, false),
          .trained = std::vector<bool>(count, false)};
}

bool is_weight(const WeightValues& weights, Value value) {
  return weights.matrices.contains(value);
}

// A product of f32 by a parameter on its right, forward or back.
bool multiplies_weight(const Graph& graph, const Node& node, const WeightValues& weights) {
  return node.op == op::matmul && is_weight(weights, node.inputs[1]) &&
         !is_weight(weights, node.inputs[0]) && !transposes(node, "transpose_a") &&
         graph.type(node.inputs[0]).dtype == DType::f32 &&
         graph.type(node.inputs[0]).shape.rank() == 2;
}

bool is_same_line(const Node& a, const Node& b) {
  return a.location == b.location && a.scope == b.scope;
}

// dW = dy^T x where W lies transposed, else x^T dy: what of it is dy; none: it is another product.
Value cotangent_of(const Graph& graph, const Node& forward, const Node& node) {
  const bool transposed = transposes(forward, "transpose_b");
  if (node.op != op::matmul || !is_same_line(forward, node)) return {};
  if (!transposes(node, "transpose_a") || transposes(node, "transpose_b")) return {};
  if (node.inputs[transposed ? 1 : 0] != forward.inputs[0]) return {};
  if (graph.type(node.outputs[0]).shape != graph.type(forward.inputs[1]).shape) return {};
  const Value dy = node.inputs[transposed ? 0 : 1];
  return graph.type(dy).shape == graph.type(forward.outputs[0]).shape ? dy : Value{};
}

// The gradients of a product, of nodes behind it. One node is the gradient of one product alone.
void find_gradients(const Graph& graph, Fp8Layer& layer, std::vector<bool>& taken) {
  const Node& forward = graph.nodes()[static_cast<size_t>(layer.forward)];
  for (size_t i = static_cast<size_t>(layer.forward) + 1; i < graph.nodes().size(); ++i) {
    const Value dy = cotangent_of(graph, forward, graph.nodes()[i]);
    if (taken[i] || !dy.valid() || dy == layer.x) continue;
    layer.weight_gradient = static_cast<int>(i);
    layer.dy = dy;
    taken[i] = true;
    break;
  }
  if (!layer.dy.valid()) return;
  for (size_t i = static_cast<size_t>(layer.forward) + 1; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.op != op::matmul || node.inputs[0] != layer.dy || node.inputs[1] != layer.w) continue;
    if (transposes(node, "transpose_a") ||
        transposes(node, "transpose_b") == transposes(forward, "transpose_b"))
      continue;
    layer.input_gradient = static_cast<int>(i);
    taken[i] = true;
    return;
  }
}

bool is_excluded(const Node& node, std::span<const std::string> excluded) {
  return is_fp32_scope(node.scope) ||
         std::ranges::any_of(excluded, [&](const std::string& pattern) {
           return pattern_distance(pattern, node.scope) == 0;
         });
}

// Does anything of the forward pass, nodes below `end`, read what follows from y together with a matrix or a table?
bool is_last(const Graph& graph, const WeightValues& weights, const Fp8Layer& layer, int end) {
  std::vector<bool> follows(static_cast<size_t>(graph.value_count()), false);
  for (const Value output : graph.nodes()[static_cast<size_t>(layer.forward)].outputs)
    follows[at(output)] = true;
  for (int i = layer.forward + 1; i < end; ++i) {
    const Node& node = graph.nodes()[static_cast<size_t>(i)];
    bool reads = false, reads_weight = false;
    for (const Value input : node.inputs) {
      reads = reads || follows[at(input)];
      reads_weight = reads_weight || weights.large[at(input)];
    }
    if (reads && reads_weight && !node.op->is(Tag::elementwise)) return false;
    if (reads)
      for (const Value output : node.outputs) follows[at(output)] = true;
  }
  return true;
}

Fp8Layer layer_of(const Graph& graph, const WeightValues& weights, int node,
                  std::map<std::string, int>& uses) {
  const Node& forward = graph.nodes()[static_cast<size_t>(node)];
  Fp8Layer layer;
  layer.weight = weights.matrices.at(forward.inputs[1]);
  layer.use = uses[layer.weight]++;
  layer.forward = node;
  layer.x = forward.inputs[0];
  layer.w = forward.inputs[1];
  return layer;
}

}  // namespace

std::string Fp8Layer::name() const { return use == 0 ? weight : fmt::format("{}#{}", weight, use); }

WeightValues weight_values(const Graph& graph) {
  WeightValues weights = empty(graph);
  for (const Graph::Input& input : graph.inputs()) {
    const std::string name = parameter_of(input);
    if (name.empty()) continue;
    const TensorType& type = graph.type(input.value);
    weights.trained[at(input.value)] = true;
    weights.large[at(input.value)] = type.shape.rank() >= 2;
    if (type.shape.rank() == 2 && is_floating(type.dtype)) weights.matrices[input.value] = name;
  }
  extend(graph, weights);
  return weights;
}

WeightValues weight_values_of_body(const Node& loop, const WeightValues& around) {
  const Graph& body = *loop.body;
  const LoopShape shape(loop);
  WeightValues weights = empty(body);
  const int operands = static_cast<int>(loop.inputs.size());
  for (int i = shape.first_carried(); i < operands; ++i) {
    const Value outer = loop.inputs[static_cast<size_t>(i)];
    // The index is the body's first input, where a counted loop has its count.
    const Value inner = body.inputs()[static_cast<size_t>(i - shape.first_carried() + 1)].value;
    weights.trained[at(inner)] = around.trained[at(outer)];
    if (i < shape.first_captured()) continue;
    weights.large[at(inner)] = around.large[at(outer)];
    const auto found = around.matrices.find(outer);
    if (found != around.matrices.end()) weights.matrices[inner] = found->second;
  }
  extend(body, weights);
  return weights;
}

std::vector<Fp8Layer> fp8_layers(const Graph& graph, const WeightValues& weights,
                                 std::span<const std::string> excluded) {
  std::vector<Fp8Layer> all;
  std::vector<bool> taken(graph.nodes().size(), false);
  std::map<std::string, int> uses;
  int end = static_cast<int>(graph.nodes().size());  // of the forward pass
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (taken[i] || !multiplies_weight(graph, graph.nodes()[i], weights)) continue;
    std::map<std::string, int> counted = uses;
    Fp8Layer layer = layer_of(graph, weights, static_cast<int>(i), counted);
    find_gradients(graph, layer, taken);
    if (!layer.dy.valid()) continue;
    uses = counted;
    end = std::min(
        {end, layer.weight_gradient, layer.input_gradient < 0 ? end : layer.input_gradient});
    all.push_back(std::move(layer));
  }
  std::erase_if(all, [&](const Fp8Layer& layer) {
    return !weights.trained[at(layer.x)] ||
           is_excluded(graph.nodes()[static_cast<size_t>(layer.forward)], excluded) ||
           is_last(graph, weights, layer, end);
  });
  return all;
}

std::vector<Fp8Layer> evaluated_fp8_layers(const Graph& graph, const WeightValues& weights,
                                           std::span<const std::string> names) {
  std::vector<Fp8Layer> layers;
  std::map<std::string, int> uses;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!multiplies_weight(graph, graph.nodes()[i], weights)) continue;
    Fp8Layer layer = layer_of(graph, weights, static_cast<int>(i), uses);
    if (std::ranges::find(names, layer.name()) != names.end()) layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace fullbore
