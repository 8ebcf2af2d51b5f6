#include "fullbore/device/interpret.h"

#include <algorithm>

#include "fullbore/base/check.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/print.h"

namespace fullbore {
namespace {

using Operands = std::vector<const Literal*>;
using Observer = std::function<void(const Node&, std::span<const Literal>)>;

std::vector<Literal> run_graph(const Graph& graph, const Operands& inputs,
                               const Observer& observe = {});

std::vector<Literal> allocate(const std::vector<TensorType>& types) {
  std::vector<Literal> literals;
  for (const TensorType& type : types) literals.emplace_back(type);
  return literals;
}

Literal run_elementwise(const OpDef& op, const TensorType& output_type, const Operands& inputs) {
  Literal output(output_type);
  const auto at = [&](size_t operand, size_t i) {
    return operand < inputs.size() ? inputs[operand]->at(static_cast<int64_t>(i)) : 0.0;
  };
  const auto integer_at = [&](size_t operand, size_t i) {
    return operand < inputs.size() ? inputs[operand]->integers()[i] : int64_t{0};
  };
  const auto count = static_cast<size_t>(output.elements());
  // The last operand tells real from integer arithmetic: select's first is a boolean.
  if (inputs.back()->floating()) {
    for (size_t i = 0; i < count; ++i)
      output.put(static_cast<int64_t>(i), evaluate_real(op.scalar, at(0, i), at(1, i), at(2, i)));
  } else {
    const DType dtype = inputs.back()->dtype();
    for (size_t i = 0; i < count; ++i)
      output.integers()[i] =
          evaluate_integer(op.scalar, dtype, integer_at(0, i), integer_at(1, i), integer_at(2, i));
  }
  return output;
}

Literal row(const Literal& rows, int64_t index) {
  Literal result({rows.dtype(), rows.shape().without(0)});
  const int64_t width = result.elements();
  if (rows.floating())
    std::copy_n(rows.reals().begin() + index * width, width, result.reals().begin());
  else
    std::copy_n(rows.integers().begin() + index * width, width, result.integers().begin());
  return result;
}

void put_row(Literal& rows, int64_t index, const Literal& values) {
  const int64_t width = values.elements();
  if (rows.floating())
    std::copy_n(values.reals().begin(), width, rows.reals().begin() + index * width);
  else
    std::copy_n(values.integers().begin(), width, rows.integers().begin() + index * width);
}

// The semantics of ir/loop.h, to the letter.
std::vector<Literal> run_loop(const Node& node, const std::vector<TensorType>& output_types,
                              const Operands& inputs) {
  const LoopShape loop(node);
  const auto operand = [&](int i) { return inputs[static_cast<size_t>(i)]; };
  int64_t iterations = loop.iterations;
  if (loop.counted) iterations = std::clamp<int64_t>(operand(0)->integers()[0], 0, iterations);

  std::vector<Literal> results = allocate(output_types);
  for (int i = 0; i < loop.carried; ++i)
    results[static_cast<size_t>(i)] = *operand(loop.first_carried() + i);

  int64_t executed = 0;
  for (bool stopped = false; executed < iterations && !stopped; ++executed) {
    const int64_t index = loop.reverse ? iterations - 1 - executed : executed;
    Literal index_literal(TensorType{DType::i64, {}});
    index_literal.integers()[0] = index;
    std::vector<Literal> slices;
    for (int i = 0; i < loop.sliced; ++i)
      slices.push_back(row(*operand(loop.first_sliced() + i), index));

    Operands arguments = {&index_literal};
    for (int i = 0; i < loop.carried; ++i) arguments.push_back(&results[static_cast<size_t>(i)]);
    for (const Literal& slice : slices) arguments.push_back(&slice);
    for (int i = 0; i < loop.captured; ++i) arguments.push_back(operand(loop.first_captured() + i));

    std::vector<Literal> made = run_graph(*node.body, arguments);
    for (int i = 0; i < loop.stacked; ++i) {
      const auto output = static_cast<size_t>(loop.carried + i);
      put_row(results[output], index, made[output]);
    }
    if (loop.until) stopped = made.back().integers()[0] != 0;
    for (size_t i = 0; i < static_cast<size_t>(loop.carried); ++i) results[i] = std::move(made[i]);
  }
  if (loop.until) results.back().integers()[0] = executed;
  return results;
}

std::vector<TensorType> types_of(const Operands& operands) {
  std::vector<TensorType> types;
  for (const Literal* operand : operands) types.push_back(operand->type());
  return types;
}

std::vector<Literal> run_node(const Node& node, const std::vector<TensorType>& output_types,
                              const Operands& inputs,
                              std::vector<std::vector<double>>* magnitudes) {
  const OpDef& op = *node.op;
  if (magnitudes) magnitudes->clear();
  if (op.reference) {
    ReferenceCall call{inputs, allocate(output_types), node.attributes, node.body.get(), {}};
    op.reference(call);
    if (magnitudes) *magnitudes = std::move(call.magnitudes);
    return std::move(call.outputs);
  }
  if (is_loop(node)) return run_loop(node, output_types, inputs);
  if (node.body) return run_graph(*node.body, inputs);
  if (op.decompose) return run_graph(decomposition(op, types_of(inputs), node.attributes), inputs);
  FB_CHECK(op.is(Tag::elementwise) && !inputs.empty(), "'{}' has no reference", op.name);
  std::vector<Literal> outputs;
  outputs.push_back(run_elementwise(op, output_types[0], inputs));
  return outputs;
}

std::vector<Literal> run_graph(const Graph& graph, const Operands& inputs,
                               const Observer& observe) {
  FB_CHECK(inputs.size() == graph.inputs().size(), "{} operands for {} inputs of '{}'",
           inputs.size(), graph.inputs().size(), graph.name());
  // Inputs are borrowed, results owned until their last reader has run.
  std::vector<const Literal*> values(static_cast<size_t>(graph.value_count()), nullptr);
  std::vector<Literal> owned(values.size());
  std::vector<int> readers = graph.use_counts();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Graph::Input& input = graph.inputs()[i];
    FB_CHECK(inputs[i]->type() == graph.type(input.value), "input '{}' is {}, given {}", input.name,
             graph.type(input.value).text(), inputs[i]->type().text());
    values[static_cast<size_t>(input.value.id)] = inputs[i];
  }
  for (const Node& node : graph.nodes()) {
    Operands operands;
    for (Value input : node.inputs) operands.push_back(values[static_cast<size_t>(input.id)]);
    std::vector<TensorType> output_types;
    for (Value output : node.outputs) output_types.push_back(graph.type(output));
    std::vector<Literal> results = run_node(node, output_types, operands, nullptr);
    if (observe) observe(node, results);
    for (size_t i = 0; i < results.size(); ++i) {
      const auto id = static_cast<size_t>(node.outputs[i].id);
      FB_CHECK(results[i].type() == output_types[i], "{} made {}", print_node(graph, node),
               results[i].type().text());
      owned[id] = std::move(results[i]);
      values[id] = &owned[id];
    }
    for (Value input : node.inputs)
      if (--readers[static_cast<size_t>(input.id)] == 0) owned[static_cast<size_t>(input.id)] = {};
  }
  std::vector<Literal> outputs;
  for (const Graph::Output& output : graph.outputs())
    outputs.push_back(*values[static_cast<size_t>(output.value.id)]);
  return outputs;
}

}  // namespace

std::vector<Literal> interpret(const Graph& graph, std::span<const Literal> inputs,
                               const Observer& observe) {
  Operands operands;
  for (const Literal& input : inputs) operands.push_back(&input);
  return run_graph(graph, operands, observe);
}

std::vector<Literal> interpret_node(const Node& node, const std::vector<TensorType>& output_types,
                                    const std::vector<const Literal*>& inputs,
                                    std::vector<std::vector<double>>* magnitudes) {
  return run_node(node, output_types, inputs, magnitudes);
}

}  // namespace fullbore
