#include "fullbore/train/stored_weights.h"

#include <vector>

#include "fullbore/base/check.h"
#include "fullbore/trace/trace.h"

namespace fullbore {
namespace {

bool is_narrowed(const Graph& graph, const Graph::Input& input) {
  const TensorType& type = graph.type(input.value);
  return input.role == Role::parameter && type.dtype == DType::f32 && type.shape.rank() >= 2;
}

bool is_weight_dtype(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

}  // namespace

Graph with_bf16_weights(const Graph& graph) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    inputs.push_back(
        is_narrowed(graph, input)
            ? cast(builder.input(input.name, input.role, {DType::bf16, type.shape}), DType::f32)
            : builder.input_like(input, type));
  }
  const std::vector<Tensor> outputs = inline_graph(builder, graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Graph::Output& output = graph.outputs()[i];
    const bool narrowed = output.updates >= 0 &&
                          is_narrowed(graph, graph.inputs()[static_cast<size_t>(output.updates)]);
    builder.output(output.name, narrowed ? cast(outputs[i], DType::bf16) : outputs[i],
                   output.updates);
  }
  return builder.take();
}

void convert_elements(std::span<const std::byte> from, DType from_dtype, std::span<std::byte> to,
                      DType to_dtype) {
  const auto elements = static_cast<int64_t>(from.size()) / dtype_bytes(from_dtype);
  FB_CHECK(elements == static_cast<int64_t>(to.size()) / dtype_bytes(to_dtype), "{} elements",
           elements);
  for (int64_t i = 0; i < elements; ++i)
    store_element(to.data(), to_dtype, i, load_element(from.data(), from_dtype, i));
}

bool is_convertible_weight(const TensorType& stored, const TensorType& wanted) {
  return stored == wanted || (stored.shape == wanted.shape && is_weight_dtype(stored.dtype) &&
                              is_weight_dtype(wanted.dtype));
}

}  // namespace fullbore
