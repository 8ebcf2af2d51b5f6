// What low precision does to a softmax of large scores, and to its gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compare_nodes.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kHeads = 2, kPlaces = 16, kWidth = 16, kRows = 24, kClasses = 48;

/// Integers of at most 8 bits, which every floating dtype holds exactly: what differs from the reference is what is
/// rounded between operands and results.
std::vector<Literal> inputs_of(const Graph& graph) {
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    PhiloxStream draws(7, inputs.size());
    Literal literal(graph.type(input.value));
    const double deviation = input.name.starts_with("large") ? 55 : 1;
    for (int64_t i = 0; i < literal.elements(); ++i)
      literal.put(i, std::clamp(std::round(deviation * draws.normal()), -255.0, 255.0));
    // Keys come in pairs that differ in one small number: each softmax has two weights that are not near 0.
    const int64_t width = literal.shape()[literal.shape().rank() - 1];
    for (int64_t row = 0; row < literal.elements() / width; ++row) {
      if (input.name == "large queries") literal.put(row * width, 1);
      if (input.name != "large keys" && input.name != "large equal values") continue;
      for (int64_t i = 0; i < width && row % 2 == 1; ++i)
        literal.put(row * width + i, literal.at((row - 1) * width + i));
      if (input.name == "large keys") literal.put(row * width, row % 2 == 0 ? 0 : 2);
    }
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

double norm(const std::vector<Literal>& gradients) {
  double sum = 0;
  for (const Literal& each : gradients)
    for (int64_t i = 0; i < each.elements(); ++i) sum += each.at(i) * each.at(i);
  return std::sqrt(sum);
}

double distance(const std::vector<Literal>& a, const std::vector<Literal>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k)
    for (int64_t i = 0; i < a[k].elements(); ++i) sum += std::pow(a[k].at(i) - b[k].at(i), 2);
  return std::sqrt(sum);
}

/// A function of inputs whose gradients by those called `large` are the graph's outputs.
template <class Function>
Graph gradients_of(const std::vector<std::pair<std::string, Shape>>& shapes,
                   const Function& function) {
  GraphBuilder builder;
  std::vector<Tensor> inputs;
  for (const auto& [name, shape] : shapes)
    inputs.push_back(builder.input(name, Role::batch, {DType::f32, shape}));
  std::vector<Tensor> wanted;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (shapes[i].first.starts_with("large")) wanted.push_back(inputs[i]);
  const Tensor loss = function(inputs);
  for (const Tensor& each : gradient(loss, wanted)) builder.output("", each);
  return builder.take();
}

Tensor sum_of_all(Tensor x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) axes.push_back(axis);
  return reduce_sum(x, axes);
}

CompileOptions in(DType precision) {
  CompileOptions options;
  options.precision = precision;
  return options;
}

class SoftmaxPrecision : public ::testing::TestWithParam<DType> {
 protected:
  std::vector<Literal> run(const Graph& graph, const CompileOptions& options) {
    return run_on_device(graph, inputs_of(graph), device_, options);
  }
  /// The gradients are those of the reference but for a few roundings of weights and cotangents to the low dtype.
  void expect_near_reference(const Graph& graph, const CompileOptions& options,
                             double roundings = 4) {
    const std::vector<Literal> expected = interpret(graph, inputs_of(graph));
    const std::vector<Literal> found = run(graph, options);
    ASSERT_GT(norm(expected), 0);
    EXPECT_LT(distance(found, expected), roundings * dtype_epsilon(GetParam()) * norm(expected))
        << norm(found) << " for " << norm(expected);
  }
  std::shared_ptr<Device> device_ = cpu_device(2);
};

INSTANTIATE_TEST_SUITE_P(Low, SoftmaxPrecision, ::testing::Values(DType::bf16, DType::f16),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

Graph attention_graph(const std::string& values) {
  const Shape shape{1, kHeads, kPlaces, kWidth};
  return gradients_of(
      {{"large queries", shape}, {"large keys", shape}, {values, shape}, {"w", shape}},
      [](const std::vector<Tensor>& in) {
        return sum_of_all(attention(in[0], in[1], in[2], {.causal = true}) * in[3]);
      });
}

// q k / 4 is 1e4 and more: bf16 would round it by up to 64.
TEST_P(SoftmaxPrecision, DecomposedAttentionIsAsExactAsItsKernel) {
  const Graph graph = attention_graph("large values");
  const std::vector<Literal> expected = interpret(graph, inputs_of(graph));
  CompileOptions options = in(GetParam());
  const double of_kernel = distance(run(graph, options), expected);
  options.decomposed = {"attention", "attention_gradient"};
  const double decomposed = distance(run(graph, options), expected);
  EXPECT_LT(decomposed, 2 * of_kernel + 4 * dtype_epsilon(GetParam()) * norm(expected));
}

// Where all values that count are the same, cotangents of scores are differences of equal numbers. What is left of
// them is multiplied by queries and keys as large as the scores.
TEST_P(SoftmaxPrecision, DifferencesInItsGradientCancel) {
  const Graph graph = attention_graph("large equal values");
  CompileOptions options = in(GetParam());
  expect_near_reference(graph, options);
  options.decomposed = {"attention", "attention_gradient"};
  expect_near_reference(graph, options);
}

// Keys that may not be seen, and queries that see none: by true and false, or by an infinity that is added. Rows
// without a key add nothing, to no gradient.
TEST_P(SoftmaxPrecision, RowsThatAreMaskedAreExactToo) {
  const Shape shape{1, kHeads, kPlaces, kWidth};
  const std::vector<std::pair<std::string, Shape>> shapes = {
      {"large queries", shape}, {"large keys", shape}, {"large equal values", shape}, {"w", shape}};
  for (const bool added : {false, true}) {
    const auto masked_attention = [&](const std::vector<Tensor>& in) {
      const Shape rows{kPlaces, kPlaces};
      const Tensor query = iota(in[0].builder(), {DType::f32, rows}, 0);
      const Tensor key = iota(in[0].builder(), {DType::f32, rows}, 1);
      // Pairs of keys of which one or none is masked, and every fifth query sees none.
      const Tensor seen = logical_and(less_equal(key, query + 4.0),
                                      less(0.5, abs(query - 5.0 * floor(query * 0.2))));
      Tensor mask = reshape(seen, {1, 1, kPlaces, kPlaces});
      if (added) {
        const Tensor zero = full(in[0].builder(), {DType::f32, mask.shape()}, 0);
        mask = select(mask, zero, -INFINITY);
      }
      return sum_of_all(attention(in[0], in[1], in[2], {.mask = mask}) * in[3]);
    };
    const Graph graph = gradients_of(shapes, masked_attention);
    const std::vector<Literal> expected = interpret(graph, inputs_of(graph));
    for (int64_t i = 0; i < kWidth; ++i)
      ASSERT_EQ(expected[0].at(5 * kWidth + i), 0) << "a query that sees no key";
    // What is masked takes from the norm of the gradients, not from what is rounded.
    CompileOptions options = in(GetParam());
    expect_near_reference(graph, options, 8);
    options.decomposed = {"attention", "attention_gradient"};
    expect_near_reference(graph, options, 8);
    const std::vector<Literal> found = run(graph, options);
    for (int64_t i = 0; i < kWidth; ++i) EXPECT_EQ(found[0].at(5 * kWidth + i), 0);
  }
}

const std::vector<std::pair<std::string, Shape>> kOperands = {{"large queries", {kRows, kWidth}},
                                                              {"large keys", {kClasses, kWidth}},
                                                              {"w", {kRows, kClasses}}};

Tensor scores_of(Tensor queries, Tensor keys) {
  return matmul(queries, keys, {.transpose_b = true}) * 0.25;
}

Tensor repeated(Tensor of_rows, const Shape& shape) { return broadcast_to(of_rows, shape); }

// Written by hand, as a model may.
Tensor own_softmax(Tensor x) {
  const Tensor values = exp(x - repeated(stop_gradient(reduce_max(x, {1}, true)), x.shape()));
  return values / repeated(reduce_sum(values, {1}, true), x.shape());
}

TEST_P(SoftmaxPrecision, OfAProductIsOfExactScores) {
  expect_near_reference(gradients_of(kOperands,
                                     [](const std::vector<Tensor>& in) {
                                       return sum_of_all(softmax(scores_of(in[0], in[1])) * in[2]);
                                     }),
                        in(GetParam()));
}

TEST_P(SoftmaxPrecision, WrittenWithPrimitivesIsTheSame) {
  expect_near_reference(
      gradients_of(kOperands,
                   [](const std::vector<Tensor>& in) {
                     return sum_of_all(own_softmax(scores_of(in[0], in[1])) * in[2]);
                   }),
      in(GetParam()));
}

TEST_P(SoftmaxPrecision, OfALogarithmIsOfExactScores) {
  expect_near_reference(
      gradients_of(kOperands,
                   [](const std::vector<Tensor>& in) {
                     const Tensor logs = log_softmax(scores_of(in[0], in[1]));
                     return sum_of_all(select(greater(logs, -20.0), logs * in[2], 0.0));
                   }),
      in(GetParam()));
}

TEST_P(SoftmaxPrecision, OfACrossEntropyIsOfExactLogits) {
  expect_near_reference(gradients_of(kOperands,
                                     [](const std::vector<Tensor>& in) {
                                       const Tensor logits = scores_of(in[0], in[1]);
                                       return sum_of_all(cross_entropy(logits, argmax(logits, 1)));
                                     }),
                        in(GetParam()));
}

// Forward and backward pass are loops of their own, with scores or weights between them.
TEST_P(SoftmaxPrecision, OfALoopIsOfExactScores) {
  for (const bool own : {false, true})
    expect_near_reference(
        gradients_of(
            {{"large queries", {3, kRows, kWidth}}, kOperands[1], {"w", {kClasses, kWidth}}},
            [&](const std::vector<Tensor>& in) {
              const Tensor zero = full(in[0].builder(), {DType::f32, {kRows, kWidth}}, 0);
              return sum_of_all(loop(in[0].builder(), {zero}, {in[0]}, {.iterations = 3},
                                     [&](const LoopBody& body) {
                                       const Tensor scores = scores_of(body.slices[0], in[1]);
                                       const Tensor weights =
                                           own ? own_softmax(scores) : softmax(scores);
                                       return IterationResults{
                                           .carried = {body.carried[0] + matmul(weights, in[2])}};
                                     })
                                    .carried[0]);
            }),
        in(GetParam()));
}

}  // namespace
}  // namespace fullbore
