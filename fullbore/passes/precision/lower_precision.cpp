#include "fullbore/passes/precision/lower_precision.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/paged_attention.h"
#include "fullbore/passes/precision/pinned_values.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// Is it arithmetic of the kind that gets low operands: a contraction of f32, whatever its scope?
bool contracts_f32(const Graph& graph, const Node& node) {
  return node.op->is(Tag::contraction) && graph.type(node.inputs[0]).dtype == DType::f32;
}

// What a model remembers, or that with something new in it: State of role `recurrent`, moved at most.
bool is_remembered(const Graph& graph, Value value) {
  while (const Node* const maker = graph.producer_node(value)) {
    if (!maker->op->is(Tag::movement) && !maker->op->is(Tag::identity)) return false;
    value = maker->inputs[0];
  }
  const auto input = std::ranges::find(graph.inputs(), value, &Graph::Input::value);
  return input != graph.inputs().end() && input->role == Role::recurrent;
}

// Multiplications with each element of an operand from which on it pays to cast that first, which moves one and a half
// times the bytes that reading it does, and more if the result goes through memory.
constexpr double kFewestUses = 8;

// Keys and values of all places before a token: casting them anew for each takes longer than reading them wide.
bool reads_more_than_it_multiplies(const Graph& graph, const Node& node) {
  // Of a pool a part is read, and a token's queries are few: they are cast where dot products of pairs may wait for them.
  if (node.op == op::paged_attention) return graph.type(node.inputs[1]).dtype != DType::bf16;
  const double multiplications = node_cost(graph, node).flops / 2;
  for (size_t i = 0; i < std::min(node.inputs.size(), node.op->contracted_operands); ++i)
    if (multiplications <
            kFewestUses * static_cast<double>(graph.type(node.inputs[i]).elements()) &&
        is_remembered(graph, node.inputs[i]))
      return true;
  return false;
}

void lower_contraction(Rewriter& rewriter, const Graph& graph, const Node& node, DType low,
                       const PinnedValues& kept) {
  const Origin origin(rewriter.builder(), node);
  std::vector<Tensor> operands = rewriter.tensors(node.inputs);
  for (size_t i = 0; i < std::min(operands.size(), node.op->contracted_operands); ++i)
    if (operands[i].dtype() == DType::f32) operands[i] = cast(operands[i], low, origin.loc());
  Attributes attributes = node.attributes;
  if (attributes.has("wide")) attributes.set("wide", kept[node.outputs[0]]);
  std::vector<Tensor> results =
      rewriter.builder().emit(*node.op, operands, std::move(attributes), origin.loc());
  for (size_t i = 0; i < results.size(); ++i) {
    const DType dtype = graph.type(node.outputs[i]).dtype;
    if (results[i].dtype() != dtype) results[i] = cast(results[i], dtype, origin.loc());
  }
  rewriter.map(node, results);
}

Graph lower(const Graph& graph, const Target& target, const PinnedValues& kept) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (contracts_f32(graph, node) && !stays_f32(node, target) &&
        !reads_more_than_it_multiplies(graph, node))
      lower_contraction(rewriter, graph, node, target.precision, kept);
    else
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return lower(body, target, kept.of_body(node));
                    }));
  }
  return rewriter.finish();
}

// Operands stay f32, and nothing is cast: a matmul says that it may round them on its own way to them.
Graph mark_tf32(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op != op::matmul || !contracts_f32(graph, node) || stays_f32(node, target)) {
      rewriter.copy(
          node, rewritten_body(node, [&](const Graph& body) { return mark_tf32(body, target); }));
      continue;
    }
    const Origin origin(rewriter.builder(), node);
    Attributes attributes = node.attributes;
    attributes.set("tf32", true);
    rewriter.map(node, rewriter.builder().emit(*node.op, rewriter.tensors(node.inputs),
                                               std::move(attributes), origin.loc()));
  }
  return rewriter.finish();
}

void collect_scopes(const Graph& graph, std::vector<std::string>& scopes) {
  for (const Node& node : graph.nodes()) {
    if (node.body) collect_scopes(*node.body, scopes);
    if (std::find(scopes.begin(), scopes.end(), node.scope) == scopes.end())
      scopes.push_back(node.scope);
  }
}

// A pattern with a slip in it would lower what it was meant to protect.
void check_scopes(const Graph& graph, const Target& target) {
  if (target.fp32_scopes.empty()) return;
  std::vector<std::string> scopes;
  collect_scopes(graph, scopes);
  for (const std::string& pattern : target.fp32_scopes) {
    const auto nearest = std::min_element(
        scopes.begin(), scopes.end(), [&](const std::string& a, const std::string& b) {
          return pattern_distance(pattern, a) < pattern_distance(pattern, b);
        });
    if (nearest != scopes.end() && pattern_distance(pattern, *nearest) == 0) continue;
    throw UsageError(
        fmt::format("engine.fp32_modules: '{}' matches no module.{}", pattern,
                    nearest == scopes.end() ? "" : fmt::format(" The nearest is '{}'.", *nearest)));
  }
}

}  // namespace

Graph lower_precision(const Graph& graph, const Target& target) {
  if (target.precision == DType::f32 && !target.tf32) return graph;
  check_scopes(graph, target);
  if (target.tf32) return mark_tf32(graph, target);
  return lower(graph, target, PinnedValues(graph));
}

}  // namespace fullbore
