#include "fullbore/ir/op_def.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/ir/loop.h"

namespace fullbore {
namespace {

// Constructed at its first use: registrars of other translation units may run before this one's
// statics. A map, because OpDefs are referred to by address.
std::map<std::string, OpDef, std::less<>>& registry() {
  static std::map<std::string, OpDef, std::less<>> ops;
  return ops;
}

std::vector<TensorType> types_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  for (Value value : values) types.push_back(graph.type(value));
  return types;
}

// Every distinct operand read once, every result written once.
double operand_bytes(const Graph& graph, const Node& node) {
  std::vector<Value> distinct = node.inputs;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  double bytes = 0;
  for (Value value : distinct) bytes += static_cast<double>(graph.type(value).bytes());
  for (Value value : node.outputs) bytes += static_cast<double>(graph.type(value).bytes());
  return bytes;
}

Cost region_cost(const Graph& graph, const Node& node) {
  const Cost body = graph_cost(*node.body);
  // Intermediate values of a fused body never reach memory.
  if (!is_loop(node)) return {body.flops, operand_bytes(graph, node)};
  const auto iterations = static_cast<double>(LoopShape(node).iterations);
  return {iterations * body.flops, iterations * body.bytes};
}

double elementwise_flops(const Graph& graph, const Node& node) {
  if (!node.op->is(Tag::elementwise) || node.inputs.empty()) return 0;
  // Integer arithmetic is not counted; the last operand decides, for select's first is boolean.
  if (!is_floating(graph.type(node.inputs.back()).dtype)) return 0;
  return static_cast<double>(graph.type(node.outputs[0]).elements()) *
         scalar_op_flops(node.op->scalar);
}

}  // namespace

void OpCall::fail(const std::string& message) const {
  throw UsageError(fmt::format("{}: {}", op.name, message), loc);
}

OpRegistrar::OpRegistrar(OpDef op) {
  std::string name(op.name);
  FB_CHECK(op.infer, "op '{}' has no infer", name);
  FB_CHECK(op.is(Tag::composite) == (op.decompose != nullptr), "op '{}'", name);
  const bool inserted = registry().emplace(name, std::move(op)).second;
  FB_CHECK(inserted, "two ops are named '{}'", name);
}

const OpDef* find_op(std::string_view name) {
  const auto found = registry().find(name);
  return found == registry().end() ? nullptr : &found->second;
}

const OpDef& get_op(std::string_view name) {
  const OpDef* op = find_op(name);
  FB_CHECK(op, "there is no op '{}'", name);
  return *op;
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : registry()) ops.push_back(&op);
  return ops;
}

Graph decomposition(const OpDef& op, std::span<const TensorType> inputs,
                    const Attributes& attributes) {
  FB_CHECK(op.decompose, "'{}' is no composite", op.name);
  GraphBuilder builder{std::string(op.name)};
  std::vector<Tensor> operands;
  for (size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(builder.input(fmt::format("x{}", i), Role::local, inputs[i]));
  const std::vector<Tensor> results = op.decompose({operands, attributes, {}});
  for (size_t i = 0; i < results.size(); ++i) builder.output(fmt::format("y{}", i), results[i]);
  return builder.take();
}

Cost node_cost(const Graph& graph, const Node& node) {
  const OpDef& op = *node.op;
  if (op.cost) {
    const std::vector<TensorType> inputs = types_of(graph, node.inputs);
    const std::vector<TensorType> outputs = types_of(graph, node.outputs);
    return op.cost({inputs, outputs, node.attributes, node.body.get()});
  }
  if (node.body) return region_cost(graph, node);
  if (op.decompose)
    return graph_cost(decomposition(op, types_of(graph, node.inputs), node.attributes));
  if (op.is(Tag::identity)) return {};
  return {elementwise_flops(graph, node), operand_bytes(graph, node)};
}

Cost graph_cost(const Graph& graph) {
  Cost total;
  for (const Node& node : graph.nodes()) {
    const Cost cost = node_cost(graph, node);
    total.flops += cost.flops;
    total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace fullbore
