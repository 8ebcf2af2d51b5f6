// Linear layers in 16 bits: their biases are of the matmuls, in the kernels that a card gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/ops/matmul_bias.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/compare_nodes.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using LinearLayers = FakeCard;

Literal drawn(const TensorType& type, double step) {
  std::vector<double> elements(static_cast<size_t>(type.elements()));
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = std::sin(step * static_cast<double>(i + 1));
  Literal literal = Literal::of(type, elements);
  literal.round();
  return literal;
}

// Three layers: the last one's result is read in f32, and its bias is added by a kernel of its own.
TEST_F(LinearLayers, AddTheirBiasesAsTheOracleDoes) {
  const std::vector<TensorType> types = {
      {DType::f32, {3, 7, 40}}, {DType::f32, {72, 40}}, {DType::f32, {72}}, {DType::f32, {72, 33}},
      {DType::f32, {33}},       {DType::f32, {33, 16}}, {DType::f32, {16}}};
  GraphBuilder builder;
  std::vector<Tensor> inputs;
  std::vector<Literal> values;
  for (const TensorType& type : types) {
    inputs.push_back(builder.input(fmt::format("x{}", inputs.size()), Role::batch, type));
    values.push_back(drawn(type, 0.1 * static_cast<double>(inputs.size())));
  }
  Tensor x = reshape(inputs[0], {21, 40});
  x = matmul(x, inputs[1], {.transpose_b = true}) + inputs[2];
  x = matmul(x, inputs[3]) + inputs[4];
  builder.output("y", matmul(x, inputs[5]) + inputs[6]);
  const Graph graph = builder.take();
  for (const int64_t capability : {90, 80}) {
    fake().capability = capability;
    const auto device = open();
    for (const DType precision : {DType::bf16, DType::f16}) {
      const CompileOptions options{.precision = precision};
      const Graph lowered = run_passes(graph, compile_target(*device, options), {});
      EXPECT_EQ(std::ranges::count_if(lowered.nodes(),
                                      [](const Node& node) { return node.op == op::matmul_bias; }),
                2);
      EXPECT_EQ(first_difference(graph, values, device, options), "")
          << capability << ", " << dtype_name(precision);
    }
  }
}

}  // namespace
}  // namespace fullbore::cuda
