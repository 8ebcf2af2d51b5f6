#include "fullbore/train/fp8_matmuls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/fp8_matmul.h"
#include "fullbore/train/fp8_layers.h"
#include "fullbore/train/microbatches.h"

namespace fullbore {
namespace {

// Operands of a layer, in the order of the State's rows.
enum Operand : int { of_x, of_w, of_dy };
constexpr int kOperands = 3;

Fp8Format format_of(int operand) { return operand == of_dy ? Fp8Format::e5m2 : Fp8Format::e4m3; }

/// The layers of a graph and of the bodies around microbatches in it, numbered in one order.
struct Sites {
  std::vector<Fp8Layer> layers;
  std::vector<int> numbers;     ///< of the layers, among all
  std::map<int, Sites> bodies;  ///< by node
  int first = 0, end = 0;       ///< numbers of all in here
};

template <class Find>
Sites find_sites(const Graph& graph, const WeightValues& weights, std::vector<std::string>& names,
                 const Find& find) {
  Sites sites;
  sites.first = static_cast<int>(names.size());
  sites.layers = find(graph, weights);
  for (const Fp8Layer& layer : sites.layers) {
    const auto known = std::ranges::find(names, layer.name());
    sites.numbers.push_back(static_cast<int>(known - names.begin()));
    if (known == names.end()) names.push_back(layer.name());
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!is_loop(node) || !is_over_microbatches(node)) continue;
    Sites body = find_sites(*node.body, weight_values_of_body(node, weights), names, find);
    if (body.first < body.end) sites.bodies.emplace(static_cast<int>(i), std::move(body));
  }
  sites.end = static_cast<int>(names.size());
  return sites;
}

Tensor largest_magnitude(Tensor x) { return reduce_max(cast(abs(x), DType::f32), {0, 1}); }

Tensor element(Tensor vector, int64_t i) { return reshape(slice(vector, 0, i, i + 1), {}); }

// Of what was remembered or, where that is nothing, of the operand itself. What is no magnitude to go by leaves it at 1.
Tensor scale_of(Tensor known, Tensor own, Fp8Format format) {
  constexpr double kMost = 0x1p60;  // a product of two scales is a number of f32
  const double largest = fp8_facts(format).largest;
  const Tensor amax = select(greater(known, 0.0), known, own);
  const Tensor usable = logical_and(greater(amax, 0.0), is_finite(amax));
  return clamp(largest / (select(usable, amax, largest) * kFp8Margin), 1 / kMost, kMost);
}

/// A graph whose layers become products of 8-bit floats.
class Writer {
 public:
  /// known: f32 [3 n], the largest magnitude remembered of each operand, as a tensor of `builder`.
  Writer(GraphBuilder& builder, const Graph& graph, const Sites& sites, Tensor known,
         bool remembers)
      : builder_(builder),
        graph_(graph),
        sites_(sites),
        known_(known),
        remembers_(remembers),
        values_(static_cast<size_t>(graph.value_count())) {
    for (size_t i = 0; i < sites.layers.size(); ++i) {
      const Fp8Layer& layer = sites.layers[i];
      for (const int node : {layer.forward, layer.input_gradient, layer.weight_gradient})
        if (node >= 0) layer_of_[node] = i;
    }
  }

  void map(Value old, Tensor now) { values_[static_cast<size_t>(old.id)] = now; }
  Tensor now(Value old) const { return values_[static_cast<size_t>(old.id)]; }

  void write() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      const int number = static_cast<int>(i);
      const auto layer = layer_of_.find(number);
      const auto body = sites_.bodies.find(number);
      if (layer != layer_of_.end())
        map(node.outputs[0], product(node, layer->second));
      else if (body != sites_.bodies.end())
        write_loop(node, body->second);
      else
        keep(node, builder_.emit_like(node, operands(node)));
    }
  }

  /// What this step's operands had at most, f32 [3 (end - first)].
  Tensor largest() const {
    std::vector<Tensor> parts;
    for (int number = sites_.first; number < sites_.end;) {
      const auto own = std::ranges::find(sites_.numbers, number);
      if (own != sites_.numbers.end()) {
        const auto layer = static_cast<size_t>(own - sites_.numbers.begin());
        for (int operand = 0; operand < kOperands; ++operand)
          parts.push_back(reshape(amax_.at({layer, operand}), {1}));
        ++number;
        continue;
      }
      const Sites* const body = body_from(number);
      FB_CHECK(body != nullptr, "no layer {} in '{}'", number, graph_.name());
      parts.push_back(of_bodies_.at(body));
      number = body->end;
    }
    return parts.size() == 1 ? parts.front() : concat(parts, 0);
  }

 private:
  std::vector<Tensor> operands(const Node& node) const {
    std::vector<Tensor> result;
    for (const Value input : node.inputs) result.push_back(now(input));
    return result;
  }
  void keep(const Node& node, const std::vector<Tensor>& results) {
    for (size_t i = 0; i < node.outputs.size(); ++i) map(node.outputs[i], results[i]);
  }

  const Sites* body_from(int number) const {
    for (const auto& [node, body] : sites_.bodies)
      if (body.first == number && body.end > number) return &body;
    return nullptr;
  }

  Tensor scale(size_t layer, int operand) {
    const auto [found, is_new] = scales_.try_emplace({layer, operand});
    if (is_new) {
      const Fp8Layer& of = sites_.layers[layer];
      const Tensor own = largest_magnitude(now(operand == of_x   ? of.x
                                               : operand == of_w ? of.w
                                                                 : of.dy));
      amax_[{layer, operand}] = own;
      found->second = scale_of(element(known_, kOperands * sites_.numbers[layer] + operand), own,
                               format_of(operand));
    }
    return found->second;
  }

  Tensor product(const Node& node, size_t layer) {
    const Origin origin(builder_, node);
    const Fp8Layer& of = sites_.layers[layer];
    const auto operand_of = [&](Value value) {
      return value == of.x ? of_x : value == of.w ? of_w : of_dy;
    };
    const int a = operand_of(node.inputs[0]), b = operand_of(node.inputs[1]);
    const Tensor scale_a = scale(layer, a), scale_b = scale(layer, b);
    return fp8_matmul(now(node.inputs[0]), now(node.inputs[1]), scale_a, scale_b,
                      {.format_a = format_of(a),
                       .format_b = format_of(b),
                       .transpose_a = node.attributes.get<bool>("transpose_a"),
                       .transpose_b = node.attributes.get<bool>("transpose_b")},
                      origin.loc());
  }

  // The body reads what is known as one more captured operand, and stacks what it has had at most.
  void write_loop(const Node& node, const Sites& sites) {
    const Graph& body = *node.body;
    GraphBuilder inner(body.name());
    std::vector<Tensor> inputs;
    for (const Graph::Input& input : body.inputs())
      inputs.push_back(inner.input_like(input, body.type(input.value)));
    const Tensor known = inner.input("known", Role::local, known_.type());
    Writer writer(inner, body, sites, known, remembers_);
    for (size_t i = 0; i < inputs.size(); ++i) writer.map(body.inputs()[i].value, inputs[i]);
    writer.write();
    for (const Graph::Output& output : body.outputs())
      inner.output(output.name, writer.now(output.value));
    if (remembers_) inner.output("largest", writer.largest());
    Node changed = node;
    changed.body = std::make_shared<const Graph>(inner.take());
    std::vector<Tensor> all = operands(node);
    all.push_back(known_);
    const std::vector<Tensor> results = builder_.emit_like(changed, all);
    keep(node, results);
    if (remembers_) of_bodies_[&sites] = reduce_max(results.back(), {0});
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  const Sites& sites_;
  Tensor known_;
  bool remembers_;
  std::vector<Tensor> values_;
  std::map<int, size_t> layer_of_;  ///< by node
  std::map<std::pair<size_t, int>, Tensor> scales_, amax_;
  std::map<const Sites*, Tensor> of_bodies_;
};

/// The graph with products in 8 bits; `training`: State is updated.
Graph written(const Graph& graph, const Sites& sites, int64_t layers, bool training) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(builder.input_like(input, graph.type(input.value)));
  const int place = static_cast<int>(inputs.size());
  const Tensor history =
      builder.input(kFp8Amax, Role::control, {DType::f32, {kOperands * layers, kFp8History}});
  Writer writer(builder, graph, sites, reduce_max(history, {1}), training);
  for (size_t i = 0; i < inputs.size(); ++i) writer.map(graph.inputs()[i].value, inputs[i]);
  writer.write();
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, writer.now(output.value), output.updates);
  if (!training) return builder.take();
  const int skipped = graph.find_output("skipped");
  FB_CHECK(skipped >= 0, "'{}' does not tell whether it is skipped", graph.name());
  const Tensor largest = writer.largest();
  const Tensor newest = reshape(select(is_finite(largest), largest, 0.0), {kOperands * layers, 1});
  const Tensor parts[] = {newest, slice(history, 1, 0, kFp8History - 1)};
  const Tensor is_skipped =
      greater(writer.now(graph.outputs()[static_cast<size_t>(skipped)].value), 0.0);
  builder.output(kFp8Amax, select(is_skipped, history, concat(parts, 1)), place);
  return builder.take();
}

}  // namespace

TracedStep with_fp8_matmuls(TracedStep step, std::span<const std::string> excluded) {
  std::vector<std::string> names;
  const Sites sites = find_sites(step.graph, weight_values(step.graph), names,
                                 [&](const Graph& graph, const WeightValues& weights) {
                                   return fp8_layers(graph, weights, excluded);
                                 });
  if (names.empty()) return step;
  step.graph = written(step.graph, sites, static_cast<int64_t>(names.size()), true);
  step.initializers[kFp8Amax] = Initializer::zeros();
  step.fp8_layers = std::move(names);
  return step;
}

Graph with_fp8_evaluation(const Graph& graph, std::span<const std::string> layers) {
  if (layers.empty()) return graph;
  std::vector<std::string> names(layers.begin(), layers.end());
  const Sites sites = find_sites(graph, weight_values(graph), names,
                                 [&](const Graph& of, const WeightValues& weights) {
                                   return evaluated_fp8_layers(of, weights, layers);
                                 });
  if (sites.layers.empty()) return graph;
  return written(graph, sites, static_cast<int64_t>(layers.size()), false);
}

}  // namespace fullbore
