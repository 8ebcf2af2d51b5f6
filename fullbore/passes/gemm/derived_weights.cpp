#include "fullbore/passes/gemm/derived_weights.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

bool is_weight(Role role) { return role == Role::parameter || role == Role::frozen; }

std::vector<bool> read_by_nodes(const Graph& graph) {
  std::vector<bool> read(static_cast<size_t>(graph.value_count()), false);
  for (const Node& node : graph.nodes())
    for (const Value input : node.inputs) read[static_cast<size_t>(input.id)] = true;
  return read;
}

}  // namespace

Attributes packing_attributes(const Packing& packing) {
  return {{"transposed", packing.transposed}, {"block", packing.columns}, {"vnni", packing.depth}};
}

Tensor prepack(const Packing& packing, Tensor unpacked) {
  return unpacked.builder().emit_one(op::prepack, {unpacked}, packing_attributes(packing), {});
}

Tensor derive(const DerivedWeight& derived, Tensor parameter) {
  const Tensor unpacked = derived.dtype ? cast(parameter, *derived.dtype) : parameter;
  return derived.packing ? prepack(*derived.packing, unpacked) : unpacked;
}

std::optional<DerivedWeight> derivable(const Graph::Input& input, const Target& target) {
  if (input.role == Role::frozen && !target.copies_frozen_weights) return std::nullopt;
  if (is_weight(input.role)) return DerivedWeight{.parameter = input.name};
  return input.derived && !input.derived->packing ? input.derived : std::nullopt;
}

std::optional<Value> update_of(const Graph& graph, int input) {
  const auto update = std::ranges::find(graph.outputs(), input, &Graph::Output::updates);
  return update == graph.outputs().end() ? std::nullopt : std::optional(update->value);
}

Graph without_unread_derived_weights(const Graph& graph, const Graph& before) {
  const std::vector<bool> read = read_by_nodes(graph), was_read = read_by_nodes(before);
  const auto is_unread = [&](const Graph::Input& input) {
    const int then = before.find_input(input.name);
    return input.role == Role::derived && !read[static_cast<size_t>(input.value.id)] && then >= 0 &&
           was_read[static_cast<size_t>(before.inputs()[static_cast<size_t>(then)].value.id)];
  };
  if (std::ranges::none_of(graph.inputs(), is_unread)) return graph;
  GraphBuilder builder(graph.name());
  std::vector<Tensor> values(read.size());
  std::vector<int> places;  ///< of what stays, by input
  const auto tensor = [&](Value value) -> Tensor& { return values[static_cast<size_t>(value.id)]; };
  for (const Graph::Input& input : graph.inputs()) {
    const bool stays = !is_unread(input);
    places.push_back(stays ? static_cast<int>(builder.graph().inputs().size()) : -1);
    if (stays) tensor(input.value) = builder.input_like(input, graph.type(input.value));
  }
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands;
    for (const Value input : node.inputs) operands.push_back(tensor(input));
    const std::vector<Tensor> results = builder.emit_like(node, operands);
    for (size_t i = 0; i < results.size(); ++i) tensor(node.outputs[i]) = results[i];
  }
  for (const Graph::Output& output : graph.outputs()) {
    const int place = output.updates < 0 ? -1 : places[static_cast<size_t>(output.updates)];
    if (output.updates < 0 || place >= 0) builder.output(output.name, tensor(output.value), place);
  }
  return builder.take();
}

std::optional<Graph> deriving_graph(const Graph& graph) {
  const std::vector<bool> read = read_by_nodes(graph);
  GraphBuilder builder("derived weights of " + graph.name());
  std::map<std::string, Tensor> parameters;
  std::map<DerivedWeight, Tensor> unpacked;
  std::vector<std::pair<const Graph::Input*, Tensor>> made;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::derived || !read[static_cast<size_t>(input.value.id)]) continue;
    const DerivedWeight& derived = *input.derived;
    Tensor& parameter = parameters[derived.parameter];
    if (!parameter.valid()) {
      const int from = graph.find_input(derived.parameter);
      FB_CHECK(from >= 0, "'{}' is derived from no input", input.name);
      const Graph::Input& original = graph.inputs()[static_cast<size_t>(from)];
      parameter = builder.input_like(original, graph.type(original.value));
    }
    // A cast that several derived weights share is computed once.
    const DerivedWeight without{.parameter = derived.parameter, .dtype = derived.dtype};
    Tensor& cast = unpacked[without];
    if (!cast.valid()) cast = derive(without, parameter);
    made.emplace_back(&input, derived.packing ? prepack(*derived.packing, cast) : cast);
    FB_CHECK(made.back().second.type() == graph.type(input.value), "'{}' is {}", input.name,
             graph.type(input.value).text());
  }
  if (made.empty()) return std::nullopt;
  for (const auto& [input, value] : made) {
    const int index = static_cast<int>(builder.graph().inputs().size());
    builder.input_like(*input, value.type());
    builder.output(input->name, value, index);
  }
  return builder.take();
}

}  // namespace fullbore
