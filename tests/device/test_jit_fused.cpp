// Bodies of several ops as one kernel, against the same ops one after the other: the arithmetic of
// each element is the same, so without reductions the bits are; sums may be cut differently.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "fullbore/base/philox.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "jit_harness.h"

namespace fullbore {
namespace {

using Operands = std::vector<Tensor>;
using Write = std::function<Operands(GraphBuilder&, const Operands&)>;

// The composites' decompositions as primitives: what the pass that fuses sees.
std::vector<Tensor> expand(GraphBuilder& builder, const Graph& graph, const Operands& inputs) {
  std::map<Value, Tensor> made;
  for (size_t i = 0; i < inputs.size(); ++i) made[graph.inputs()[i].value] = inputs[i];
  for (const Node& node : graph.nodes()) {
    Operands operands;
    for (Value input : node.inputs) operands.push_back(made.at(input));
    if (node.op->decompose != nullptr) {
      GraphBuilder inner("inner");
      Operands formal;
      for (const Tensor& operand : operands)
        formal.push_back(
            inner.input("x" + std::to_string(formal.size()), Role::local, operand.type()));
      const Operands results = node.op->decompose({formal, node.attributes, {}});
      for (size_t i = 0; i < results.size(); ++i) inner.output("y" + std::to_string(i), results[i]);
      const Operands expanded = expand(builder, inner.graph(), operands);
      for (size_t i = 0; i < expanded.size(); ++i) made[node.outputs[i]] = expanded[i];
      continue;
    }
    const Operands results = builder.emit_like(node, operands);
    for (size_t i = 0; i < results.size(); ++i) made[node.outputs[i]] = results[i];
  }
  Operands outputs;
  for (const Graph::Output& output : graph.outputs()) outputs.push_back(made.at(output.value));
  return outputs;
}

Graph body_of(const std::vector<TensorType>& types, const Write& write) {
  GraphBuilder composite("body");
  Operands inputs;
  for (const TensorType& type : types)
    inputs.push_back(composite.input("x" + std::to_string(inputs.size()), Role::local, type));
  const Operands results = write(composite, inputs);
  for (size_t i = 0; i < results.size(); ++i) composite.output("y" + std::to_string(i), results[i]);
  GraphBuilder builder("body");
  Operands formal;
  for (const TensorType& type : types)
    formal.push_back(builder.input("x" + std::to_string(formal.size()), Role::local, type));
  const Operands expanded = expand(builder, composite.graph(), formal);
  for (size_t i = 0; i < expanded.size(); ++i) builder.output("y" + std::to_string(i), expanded[i]);
  return builder.take();
}

std::vector<Literal> random_operands(const std::vector<TensorType>& types) {
  std::vector<Literal> result;
  PhiloxStream draws(7);
  for (const TensorType& type : types) {
    Literal literal(type);
    for (int64_t i = 0; i < type.elements(); ++i)
      literal.put(i,
                  is_floating(type.dtype) ? draws.normal() : static_cast<double>(draws.below(2)));
    literal.round();
    result.push_back(std::move(literal));
  }
  return result;
}

// Node after node, each a kernel of its own.
std::vector<Literal> run_apart(const Graph& body, const std::vector<Literal>& inputs) {
  std::map<Value, Literal> values;
  for (size_t i = 0; i < inputs.size(); ++i) values[body.inputs()[i].value] = inputs[i];
  for (const Node& node : body.nodes()) {
    const TensorType type = body.type(node.outputs[0]);
    std::vector<Literal> operands;
    for (Value input : node.inputs) operands.push_back(values.at(input));
    if (node.op->is(Tag::identity)) {
      values[node.outputs[0]] = Literal::from_bytes(type, operands[0].bytes().data());
      continue;
    }
    JitCompiler compiler;
    std::string why_not;
    const auto kernel = compiler.add(body, node, 1, &why_not);
    EXPECT_NE(kernel, nullptr) << why_not;
    compiler.finish();
    values[node.outputs[0]] = run_kernel(*kernel, operands, {type})[0];
  }
  std::vector<Literal> outputs;
  for (const Graph::Output& output : body.outputs()) outputs.push_back(values.at(output.value));
  return outputs;
}

std::vector<Literal> run_fused(const Graph& body, const std::vector<Literal>& inputs, int parts) {
  GraphBuilder builder("step");
  Operands operands;
  for (const Literal& input : inputs)
    operands.push_back(
        builder.input("x" + std::to_string(operands.size()), Role::batch, input.type()));
  const Operands results = fused(builder, operands, std::make_shared<const Graph>(body));
  std::vector<TensorType> types;
  for (const Tensor& result : results) types.push_back(result.type());
  JitCompiler compiler;
  std::string why_not;
  const auto kernel = compiler.add(builder.graph(), builder.graph().nodes()[0], 2, &why_not);
  EXPECT_NE(kernel, nullptr) << why_not;
  if (kernel == nullptr) return {};
  compiler.finish();
  return run_kernel(*kernel, inputs, types, parts);
}

void expect_same(const std::vector<TensorType>& types, const Write& write, double tolerance) {
  const Graph body = body_of(types, write);
  const std::vector<Literal> inputs = random_operands(types);
  const std::vector<Literal> apart = run_apart(body, inputs);
  const std::vector<Literal> together = run_fused(body, inputs, 1);
  const std::vector<Literal> in_parts = run_fused(body, inputs, 3);
  ASSERT_EQ(together.size(), apart.size());
  for (size_t o = 0; o < apart.size(); ++o) {
    EXPECT_EQ(together[o].bytes(), in_parts[o].bytes());
    if (tolerance == 0) {
      EXPECT_EQ(together[o].bytes(), apart[o].bytes()) << "output " << o;
      continue;
    }
    double scale = 1;
    for (int64_t i = 0; i < apart[o].elements(); ++i)
      scale = std::max(scale, std::abs(apart[o].at(i)));
    for (int64_t i = 0; i < apart[o].elements(); ++i)
      ASSERT_NEAR(together[o].at(i), apart[o].at(i), tolerance * scale)
          << "output " << o << ", " << i;
  }
}

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }
constexpr double kSums = 1e-5;

TEST(JitFused, BiasAndGelu) {
  const Write write = [](GraphBuilder&, const Operands& x) { return Operands{gelu(x[0] + x[1])}; };
  for (int64_t width : {1, 15, 16, 17, 64, 130, 1000})
    expect_same({f32({7, width}), f32({width})}, write, 0);
}

TEST(JitFused, SeveralResultsAndDTypes) {
  expect_same(
      {f32({5, 33}), {DType::bf16, {5, 33}}, {DType::boolean, {33}}},
      [](GraphBuilder&, const Operands& x) {
        const Tensor sum = x[0] + cast(x[1], DType::f32);
        return Operands{sum, cast(sum, DType::bf16), select(x[2], sum, 0.0), less(sum, 0.0)};
      },
      0);
}

TEST(JitFused, MovementsBecomeIndices) {
  expect_same(
      {f32({6, 10}), f32({10, 6}), f32({4, 10})},
      [](GraphBuilder&, const Operands& x) {
        const Tensor moved = transpose(x[1], {1, 0}) + reverse(x[0], 1);
        return Operands{moved + pad(x[2], 0, 1, 1) * pad(slice(x[0], 1, 0, 9, 2), 1, 0, 1, 1)};
      },
      0);
}

TEST(JitFused, ReshapesOnTheWay) {
  expect_same(
      {f32({4, 6, 8}), f32({24, 8}), f32({4, 6})},
      [](GraphBuilder&, const Operands& x) {
        const Tensor heads = reshape(x[0], {4, 6, 2, 4}) * 2.0;
        const Tensor rows = reshape(heads, {24, 8}) + x[1];
        const Tensor weights = broadcast_to(reshape(x[2], {24, 1}), {24, 8});
        return Operands{reshape(rows * weights, {4, 6, 8})};
      },
      0);
}

TEST(JitFused, Softmax) {
  for (int64_t width : {1, 5, 16, 65, 300})
    expect_same(
        {f32({3, 4, width})},
        [](GraphBuilder&, const Operands& x) { return Operands{softmax(x[0])}; }, kSums);
}

TEST(JitFused, SoftmaxAlongAnOuterAxis) {
  expect_same(
      {f32({3, 20, 37})},
      [](GraphBuilder&, const Operands& x) { return Operands{softmax(x[0], 1)}; }, kSums);
}

TEST(JitFused, LayerNormWithItsStatistics) {
  for (int64_t width : {3, 64, 129, 768})
    expect_same(
        {f32({11, width}), f32({width}), f32({width})},
        [](GraphBuilder&, const Operands& x) {
          const double count = static_cast<double>(x[0].dim(-1));
          const Tensor mean = reduce_sum(x[0], {-1}, true) / count;
          const Tensor centred = x[0] - mean;
          const Tensor scale = rsqrt(reduce_sum(centred * centred, {-1}, true) / count + 1e-5);
          return Operands{centred * scale * x[1] + x[2], mean, squeeze(scale, 1)};
        },
        kSums);
}

TEST(JitFused, RowAndElementResultsTogether) {
  expect_same(
      {f32({9, 70}), f32({9, 70})},
      [](GraphBuilder&, const Operands& x) {
        const Tensor product = x[0] * x[1];
        return Operands{product, reduce_sum(product, {1}), log(reduce_sum(exp(product), {1}))};
      },
      kSums);
}

TEST(JitFused, SumsOfSeveralAxes) {
  expect_same(
      {f32({3, 4, 5, 6})},
      [](GraphBuilder&, const Operands& x) {
        return Operands{reduce_sum(x[0] * x[0], {1, 3}, true), x[0] * 2.0};
      },
      kSums);
  expect_same(
      {f32({30, 100})},
      [](GraphBuilder&, const Operands& x) {
        return Operands{reduce_sum(x[0] * x[0], {0, 1})};
      },
      kSums);
}

// One number per head splits a row into axes: exponentials are kept over all of them from walk to walk, and several of them
// beside one another.
TEST(JitFused, CostlyValuesOfRowsOfSeveralAxes) {
  for (int64_t width : {3, 16, 65})
    expect_same(
        {f32({7, 2, 3, width}), f32({1, 2, 3, 1})},
        [](GraphBuilder&, const Operands& x) {
          const Tensor e = exp(x[0] * broadcast_to(x[1], x[0].shape())), t = tanh(e);
          const Tensor sum = reduce_sum(e * t, {1, 2, 3}, true);
          return Operands{e / sum, t * sum};
        },
        kSums);
}

TEST(JitFused, ColumnsOfABatch) {
  for (int64_t width : {1, 16, 63, 64, 65, 200})
    expect_same(
        {f32({40, width}), f32({40, width})},
        [](GraphBuilder&, const Operands& x) {
          return Operands{reduce_sum(x[0] * x[1], {0}), reduce_max(x[0], {0})};
        },
        kSums);
}

TEST(JitFused, CountsWithinSpreadPads) {
  for (const DType dtype : {DType::f32, DType::i32})
    expect_same(
        {f32({130})},
        [&](GraphBuilder& builder, const Operands& x) {
          const Tensor once = pad(iota(builder, {dtype, {43}}, 0), 0, 1, 2, 2);
          const Tensor twice = slice(pad(once, 0, 0, 0, 1), 0, 0, 130);
          return Operands{x[0] + cast(twice, DType::f32)};
        },
        0);
}

// Vectors lie inside a row, outside of it, and across its ends.
TEST(JitFused, ReadsNarrowRowsThatAreCutAndPadded) {
  for (const DType dtype : {DType::bf16, DType::f16})
    expect_same(
        {{dtype, {3, 100}}, {dtype, {3, 41}}},
        [](GraphBuilder&, const Operands& x) {
          const Tensor both = pad(x[0], 1, 0, 41) + pad(x[1], 1, 100, 0);
          return Operands{both, pad(slice(x[0], 1, 3, 90), 1, 37, 17)};
        },
        0);
}

TEST(JitFused, SaysWhatItCannotDo) {
  const Graph body = body_of({f32({4, 4})}, [](GraphBuilder&, const Operands& x) {
    return Operands{reduce_sum(x[0], {0}), reduce_sum(x[0], {1})};
  });
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, f32({4, 4}));
  fused(builder, std::vector<Tensor>{x}, std::make_shared<const Graph>(body));
  std::string why_not;
  EXPECT_FALSE(can_lower(builder.graph(), builder.graph().nodes()[0], &why_not));
  EXPECT_EQ(why_not, "reductions along different axes");
}

}  // namespace
}  // namespace fullbore
