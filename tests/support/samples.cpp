#include "tests/support/samples.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

TensorType sample_type(const TensorType& type, DType dtype) {
  return {sample_dtype(type.dtype, dtype), type.shape};
}

Attributes sample_attributes(const Attributes& attributes, DType dtype) {
  Attributes result;
  for (const Attributes::Entry& entry : attributes.entries()) {
    const auto* written = std::get_if<DType>(&entry.value);
    if (written)
      result.set(entry.name, sample_dtype(*written, dtype));
    else
      result.set(entry.name, entry.value);
  }
  return result;
}

std::shared_ptr<const Graph> sample_body(const std::shared_ptr<const Graph>& body, DType dtype) {
  return body ? std::make_shared<const Graph>(sample_graph(*body, dtype)) : nullptr;
}

}  // namespace

DType sample_dtype(DType written, DType dtype) { return written == DType::f32 ? dtype : written; }

Graph sample_graph(const Graph& graph, DType dtype) {
  Graph result(graph.name());
  std::vector<Value> values(static_cast<size_t>(graph.value_count()));
  for (const Graph::Input& input : graph.inputs())
    values[static_cast<size_t>(input.value.id)] =
        result.add_input_like(input, sample_type(graph.type(input.value), dtype));
  for (const Node& node : graph.nodes()) {
    std::vector<Value> operands;
    for (Value input : node.inputs) operands.push_back(values[static_cast<size_t>(input.id)]);
    const Node& copy = result.add_node_like(node, *node.op, std::move(operands),
                                            sample_attributes(node.attributes, dtype),
                                            sample_body(node.body, dtype));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      values[static_cast<size_t>(node.outputs[i].id)] = copy.outputs[i];
  }
  for (const Graph::Output& output : graph.outputs())
    result.add_output(output.name, values[static_cast<size_t>(output.value.id)], output.updates);
  return result;
}

Literal fill(const SampleInput& input, DType dtype, uint64_t seed, uint64_t stream) {
  const TensorType type = sample_type(input.type, dtype);
  if (input.fill == SampleInput::Fill::given) {
    Literal literal = Literal::of(type, input.values);
    literal.round();
    return literal;
  }
  Literal literal(type);
  PhiloxStream draws(seed, stream);
  for (int64_t i = 0; i < literal.elements(); ++i) {
    switch (input.fill) {
      case SampleInput::Fill::normal: literal.put(i, draws.normal()); break;
      case SampleInput::Fill::uniform: literal.put(i, draws.uniform(input.low, input.high)); break;
      case SampleInput::Fill::integers:
        literal.put(i, std::floor(draws.uniform(input.low, input.high)));
        break;
      case SampleInput::Fill::given: break;
    }
  }
  literal.round();
  return literal;
}

MaterialisedSample materialise(const OpDef& op, const Sample& sample, DType dtype, uint64_t seed) {
  MaterialisedSample result;
  std::vector<Value> operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i) {
    const SampleInput& input = sample.inputs[i];
    const TensorType type = sample_type(input.type, dtype);
    operands.push_back(result.graph.add_input(fmt::format("x{}", i), Role::batch, type));
    result.inputs.push_back(fill(input, dtype, seed, i));
    result.wanted.push_back(sample.gradcheck && input.differentiable && is_floating(type.dtype));
  }
  const Node& node =
      result.graph.add_node(op, std::move(operands), sample_attributes(sample.attributes, dtype),
                            sample_body(sample.body, dtype));
  const std::vector<Value> outputs = node.outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    result.graph.add_output(fmt::format("y{}", i), outputs[i]);
  return result;
}

std::vector<DType> sample_dtypes(const OpDef& op) {
  return op.dtypes.empty() ? std::vector<DType>{DType::f32} : op.dtypes;
}

}  // namespace fullbore
