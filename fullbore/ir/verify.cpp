#include "fullbore/ir/verify.h"

#include <fmt/format.h>

#include <set>

#include "fullbore/base/error.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"

namespace fullbore {
namespace {

std::string verify_node(const Graph& graph, const Node& node, int index) {
  std::vector<TensorType> input_types;
  for (Value input : node.inputs) {
    if (!input.valid() || input.id >= graph.value_count())
      return fmt::format("operand %{} does not exist", input.id);
    if (graph.producer(input) >= index) return fmt::format("operand %{} is made later", input.id);
    input_types.push_back(graph.type(input));
  }
  if (node.op->is(Tag::region) != (node.body != nullptr)) return "body missing or unexpected";
  if (node.body) {
    const std::string inner = verify(*node.body);
    if (!inner.empty()) return "body: " + inner;
  }
  std::vector<TensorType> inferred;
  try {
    inferred = node.op->infer({*node.op, input_types, node.attributes, node.body.get(), {}});
  } catch (const UsageError& error) {
    return error.what();
  }
  if (inferred.size() != node.outputs.size()) return "number of outputs";
  for (size_t i = 0; i < inferred.size(); ++i) {
    const Value output = node.outputs[i];
    if (!output.valid() || output.id >= graph.value_count() || graph.producer(output) != index)
      return fmt::format("output {} is not this node's", i);
    if (inferred[i] != graph.type(output))
      return fmt::format("output {} is {}, the op infers {}", i, graph.type(output).text(),
                         inferred[i].text());
  }
  return "";
}

std::string verify_interface(const Graph& graph) {
  std::set<std::string> names;
  for (const Graph::Input& input : graph.inputs()) {
    if (!names.insert(input.name).second)
      return fmt::format("two inputs are named '{}'", input.name);
    if (input.role == Role::derived && !input.derived)
      return fmt::format("input '{}' is derived, and derived of nothing", input.name);
    // Beside State; but 8 bits stand for a parameter in State.
    if (input.derived && input.role != (input.derived->in_8_bits() ? Role::frozen : Role::derived))
      return fmt::format("input '{}' is {}, and derived", input.name, role_name(input.role));
    if (input.derived && input.derived->scales && !input.derived->in_8_bits())
      return fmt::format("input '{}' has scales, and is not in 8 bits", input.name);
    if (input.derived && !input.derived->dtype && !input.derived->packing)
      return fmt::format("input '{}' is its parameter itself", input.name);
  }
  std::set<int> updated;
  for (const Graph::Output& output : graph.outputs()) {
    if (!output.value.valid() || output.value.id >= graph.value_count())
      return fmt::format("output '{}' does not exist", output.name);
    if (output.updates < 0) continue;
    if (output.updates >= static_cast<int>(graph.inputs().size()))
      return fmt::format("output '{}' updates input {}", output.name, output.updates);
    const Graph::Input& input = graph.inputs()[static_cast<size_t>(output.updates)];
    if (!is_kept(input.role))
      return fmt::format("output '{}' updates '{}', which is no State", output.name, input.name);
    if (graph.type(input.value) != graph.type(output.value))
      return fmt::format("output '{}' of {} updates '{}' of {}", output.name,
                         graph.type(output.value).text(), input.name,
                         graph.type(input.value).text());
    if (!updated.insert(output.updates).second)
      return fmt::format("'{}' is updated twice", input.name);
  }
  return "";
}

}  // namespace

std::string verify(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const std::string problem = verify_node(graph, graph.nodes()[i], static_cast<int>(i));
    if (!problem.empty())
      return fmt::format("node {}: {}\n{}", i, problem, print_node(graph, graph.nodes()[i]));
  }
  return verify_interface(graph);
}

}  // namespace fullbore
