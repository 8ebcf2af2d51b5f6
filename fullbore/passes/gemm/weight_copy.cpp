#include "fullbore/passes/gemm/weight_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

constexpr std::string_view kAs = " as ";
constexpr std::string_view kInPanels = " in panels of ";
constexpr std::string_view kBy = " by ";
constexpr std::string_view kTransposed = ", transposed";

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "32 by 2, transposed"
std::optional<Packing> parse_packing(std::string_view text) {
  Packing packing;
  if (text.ends_with(kTransposed)) {
    packing.transposed = true;
    text.remove_suffix(kTransposed.size());
  }
  const size_t by = text.find(kBy);
  if (by == std::string_view::npos) return std::nullopt;
  const auto panel = parse_integer(text.substr(0, by));
  const auto pair = parse_integer(text.substr(by + kBy.size()));
  if (!panel || !pair) return std::nullopt;
  packing.panel = *panel;
  packing.pair = *pair;
  return packing;
}

bool has_copies(Role role) { return role == Role::parameter || role == Role::frozen; }

std::vector<bool> read_by_nodes(const Graph& graph) {
  std::vector<bool> read(static_cast<size_t>(graph.value_count()), false);
  for (const Node& node : graph.nodes())
    for (const Value input : node.inputs) read[static_cast<size_t>(input.id)] = true;
  return read;
}

}  // namespace

std::string WeightCopy::name() const {
  std::string text = parameter;
  if (dtype) text += fmt::format("{}{}", kAs, dtype_name(*dtype));
  if (packing)
    text += fmt::format("{}{}{}{}{}", kInPanels, packing->panel, kBy, packing->pair,
                        packing->transposed ? kTransposed : "");
  return text;
}

std::optional<WeightCopy> WeightCopy::parse(std::string_view name) {
  WeightCopy copy;
  if (const size_t panels = name.rfind(kInPanels); panels != std::string_view::npos) {
    copy.packing = parse_packing(name.substr(panels + kInPanels.size()));
    if (!copy.packing) return std::nullopt;
    name = name.substr(0, panels);
  }
  if (const size_t as = name.rfind(kAs); as != std::string_view::npos) {
    copy.dtype = parse_dtype(name.substr(as + kAs.size()));
    if (!copy.dtype) return std::nullopt;
    name = name.substr(0, as);
  }
  copy.parameter = name;
  if (!copy.dtype && !copy.packing) return std::nullopt;
  return copy;
}

Tensor WeightCopy::pack(Tensor unpacked) const {
  return unpacked.builder().emit_one("pack_panels", {unpacked}, packing->attributes(), {});
}

Tensor WeightCopy::make(Tensor original) const {
  const Tensor unpacked = dtype ? cast(original, *dtype) : original;
  return packing ? pack(unpacked) : unpacked;
}

std::optional<WeightCopy> copied_by(const Graph::Input& input) {
  if (has_copies(input.role)) return WeightCopy{.parameter = input.name};
  if (input.role != Role::copy) return std::nullopt;
  const auto copy = WeightCopy::parse(input.name);
  FB_CHECK(copy, "'{}' names no copy", input.name);
  return copy->packing ? std::nullopt : copy;
}

std::optional<Value> update_of(const Graph& graph, int input) {
  const auto update = std::ranges::find(graph.outputs(), input, &Graph::Output::updates);
  return update == graph.outputs().end() ? std::nullopt : std::optional(update->value);
}

Graph without_abandoned_copies(const Graph& graph, const Graph& before) {
  const std::vector<bool> read = read_by_nodes(graph), was_read = read_by_nodes(before);
  const auto is_abandoned = [&](const Graph::Input& input) {
    const int then = before.find_input(input.name);
    return input.role == Role::copy && !read[static_cast<size_t>(input.value.id)] && then >= 0 &&
           was_read[static_cast<size_t>(before.inputs()[static_cast<size_t>(then)].value.id)];
  };
  if (std::ranges::none_of(graph.inputs(), is_abandoned)) return graph;
  GraphBuilder builder(graph.name());
  std::vector<Tensor> values(read.size());
  std::vector<int> places;  ///< of what stays, by input
  const auto tensor = [&](Value value) -> Tensor& { return values[static_cast<size_t>(value.id)]; };
  for (const Graph::Input& input : graph.inputs()) {
    const bool stays = !is_abandoned(input);
    places.push_back(stays ? static_cast<int>(builder.graph().inputs().size()) : -1);
    if (stays) tensor(input.value) = builder.input(input.name, input.role, graph.type(input.value));
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

std::optional<Graph> copying_graph(const Graph& graph) {
  const std::vector<bool> read = read_by_nodes(graph);
  GraphBuilder builder("copies of " + graph.name());
  std::map<std::string, Tensor> parameters, unpacked;
  struct Made {
    std::string name;
    Tensor value;
  };
  std::vector<Made> made;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::copy || !read[static_cast<size_t>(input.value.id)]) continue;
    const auto copy = WeightCopy::parse(input.name);
    FB_CHECK(copy, "'{}' names no copy", input.name);
    Tensor& parameter = parameters[copy->parameter];
    if (!parameter.valid()) {
      const int from = graph.find_input(copy->parameter);
      FB_CHECK(from >= 0, "'{}' is a copy of no input", input.name);
      const Graph::Input& original = graph.inputs()[static_cast<size_t>(from)];
      parameter = builder.input(original.name, original.role, graph.type(original.value));
    }
    // A cast that several copies are made of is made once.
    const WeightCopy without{.parameter = copy->parameter, .dtype = copy->dtype};
    Tensor& cast = unpacked[without.name()];
    if (!cast.valid()) cast = without.make(parameter);
    made.push_back({input.name, copy->packing ? copy->pack(cast) : cast});
    FB_CHECK(made.back().value.type() == graph.type(input.value), "'{}' is {}", input.name,
             graph.type(input.value).text());
  }
  if (made.empty()) return std::nullopt;
  for (const Made& each : made) {
    const int input = static_cast<int>(builder.graph().inputs().size());
    builder.input(each.name, Role::copy, each.value.type());
    builder.output(each.name, each.value, input);
  }
  return builder.take();
}

}  // namespace fullbore
