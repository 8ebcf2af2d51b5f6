#include "op_check.h"

#include <fmt/format.h>

#include "../support/comparison.h"
#include "../support/samples.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/tensor.h"
#include "kernel_runner.h"

namespace fullbore::testing_support {
namespace {

std::vector<TensorType> output_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (Value output : node.outputs) types.push_back(graph.type(output));
  return types;
}

// The planner gives these bytes of their own without a kernel: the same bytes, or known values.
bool needs_kernel(const Node& node) {
  return !node.op->is(Tag::identity) && node.op->name != "constant";
}

// Composites as their decompositions, and those of what they are made of, except natively supported ones.
Graph expanded(const Graph& graph, const Target& target) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> values(static_cast<size_t>(graph.value_count()));
  const auto tensor = [&](Value value) -> Tensor& { return values[static_cast<size_t>(value.id)]; };
  for (const Graph::Input& input : graph.inputs())
    tensor(input.value) = builder.input_like(input, graph.type(input.value));
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands;
    std::vector<TensorType> types;
    for (Value input : node.inputs) {
      operands.push_back(tensor(input));
      types.push_back(graph.type(input));
    }
    const bool kept = !node.op->is(Tag::composite) || target.is_native(graph, node);
    const std::vector<Tensor> results =
        kept ? builder.emit_like(node, operands)
             : inline_graph(builder,
                            expanded(decomposition(*node.op, types, node.attributes), target),
                            operands);
    for (size_t i = 0; i < results.size(); ++i) tensor(node.outputs[i]) = results[i];
  }
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, tensor(output.value), output.updates);
  return builder.take();
}

}  // namespace

OpCheck::OpCheck(const Target& target, Compiler& compiler, const OpDef& op, const Sample& sample,
                 DType dtype, uint64_t seed)
    : name_(fmt::format("{}, {}, {}", op.name, sample.why, dtype_name(dtype))) {
  MaterialisedSample call = materialise(op, sample, dtype, seed);
  graph_ = expanded(call.graph, target);
  inputs_ = std::move(call.inputs);
  for (const Node& node : graph_.nodes())
    kernels_.push_back(needs_kernel(node) ? compiler.compile(graph_, node, 3) : nullptr);
}

std::string OpCheck::run() const { return run(nullptr); }

std::string OpCheck::run(Tamper tamper) const {
  std::vector<Literal> values(static_cast<size_t>(graph_.value_count()));
  for (size_t i = 0; i < inputs_.size(); ++i)
    values[static_cast<size_t>(graph_.inputs()[i].value.id)] = inputs_[i];
  for (size_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.nodes()[i];
    std::vector<const Literal*> operands;
    for (Value input : node.inputs) operands.push_back(&values[static_cast<size_t>(input.id)]);
    std::vector<Literal> results;
    const std::string problem = run_node(node, kernels_[i].get(), operands, results, tamper);
    if (!problem.empty())
      return fmt::format("{}: {}\n{}", name_, problem, print_node(graph_, node));
    for (size_t o = 0; o < results.size(); ++o)
      values[static_cast<size_t>(node.outputs[o].id)] = std::move(results[o]);
  }
  return "";
}

std::string OpCheck::run_node(const Node& node, const Kernel* kernel,
                              const std::vector<const Literal*>& operands,
                              std::vector<Literal>& results, Tamper tamper) const {
  const std::vector<TensorType> types = output_types(graph_, node);
  if (!kernel) {
    results = interpret_node(node, types, operands);
    for (Literal& result : results) result.round();
    return "";
  }
  const std::vector<Expected> expected = expect(graph_, node, operands);
  const RunResult run = run_kernel_in_all_ways(*kernel, operands, types);
  if (!run.problem.empty()) return fmt::format("{}: {}", kernel->description(), run.problem);
  for (size_t o = 0; o < types.size(); ++o) {
    results.push_back(Literal::from_bytes(types[o], run.outputs[o].data()));
    if (tamper) tamper(results.back());
    const std::string problem = compare(expected[o], results.back(), o);
    if (!problem.empty()) return fmt::format("{}: {}", kernel->description(), problem);
  }
  return "";
}

}  // namespace fullbore::testing_support
