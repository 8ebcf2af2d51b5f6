#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/recurrent.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// A literal of f(index...), row by row.
template <class F>
Literal table(Shape shape, const F& f) {
  std::vector<double> values;
  const int64_t last = shape[shape.rank() - 1];
  for (int64_t row = 0; row < shape.elements() / last; ++row)
    for (int64_t i = 0; i < last; ++i)
      values.push_back(f(static_cast<double>(row), static_cast<double>(i)));
  return reals(shape, values);
}

void expect_elements(const Literal& x, int64_t first, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(x.at(first + static_cast<int64_t>(i)), expected[i], 1e-6) << first << "+" << i;
}

// --- reference vectors: computed once outside of this project, to seven decimals ---------------------

struct Wkv6Vector {
  Literal r =
      table({1, 5, 1, 3}, [](double t, double i) { return std::sin(0.7 * t + 1.3 * i + 0.1); });
  Literal k = table({1, 5, 1, 3}, [](double t, double i) { return std::cos(0.5 * t + 0.9 * i); });
  Literal v =
      table({1, 5, 1, 2}, [](double t, double j) { return std::sin(1.1 * t + 0.4 * j + 0.3); });
  Literal g =
      table({1, 5, 1, 3}, [](double t, double i) { return -0.2 - 0.15 * std::fmod(t + 2 * i, 4); });
  Literal u = table({1, 3}, [](double, double i) { return 0.3 - 0.2 * i; });
  Literal initial = reals({1, 1, 3, 2}, std::vector<double>(6, 0));

  std::vector<Literal> operands() const { return {r, k, v, g, u, initial}; }
};

std::vector<Tensor> run_wkv6(const std::vector<Tensor>& x, int64_t chunk) {
  const RecurrenceResult made =
      wkv6(x[0], x[1], x[2], x[3], x[4], {.initial = x[5], .chunk = chunk});
  return {made.y, made.state};
}

TEST(Wkv6, HasTheRecordedResults) {
  for (const int64_t chunk : {1, 2, 3, 5, 64}) {
    SCOPED_TRACE(chunk);
    const auto made = evaluate_all(
        Wkv6Vector().operands(), [&](GraphBuilder&, const auto& x) { return run_wkv6(x, chunk); });
    expect_elements(made[0], 0,
                    {0.0298229, 0.0650123, 0.5715147, 1.0268402, 1.7787310, 2.0637908, 1.7913820,
                     1.3865828, -0.1261455, -0.8000474});
    expect_elements(made[1], 0, {0.8068747, 0.7359384, 1.1782768, 1.3354279, 0.7251811, 1.0528514});
  }
}

TEST(Wkv6, HasTheRecordedGradients) {
  for (const int64_t chunk : {1, 2, 3, 5, 64}) {
    SCOPED_TRACE(chunk);
    const Literal dy = reals({1, 5, 1, 2}, std::vector<double>(10, 1));
    const auto d = differentiate(Wkv6Vector().operands(), dy, [&](GraphBuilder&, const auto& x) {
      return run_wkv6(x, chunk)[0];
    });
    expect_elements(d[0], 0, {0.2819214, 0.0584150, 0.0213510});
    expect_elements(d[1], 6, {1.0326123, -0.7803153, -1.0745129});
    expect_elements(d[2], 2, {2.5779854, 2.5779854});
    expect_elements(d[3], 3, {1.0354690, -0.1387734, 0.2476364});
    expect_elements(d[3], 9, {0.2369557, -0.1544677, 0.6159718});
    expect_elements(d[4], 0, {1.9019025, -1.1675154, -1.3662173});
    expect_elements(d[5], 0, {1.5892898, 1.5892898, 1.3649226, 1.3649226, -0.7314305, -0.7314305});
  }
}

struct SsdVector {
  Literal x = table({1, 5, 2, 2}, [](double row, double p) {
    const double t = std::floor(row / 2), h = std::fmod(row, 2);
    return std::sin(0.6 * t + 0.8 * h + 1.1 * p);
  });
  Literal dt =
      table({1, 5, 2}, [](double t, double h) { return 0.1 + 0.05 * std::fmod(t + h, 3); });
  Literal a = reals({2}, {-1, -2});
  Literal b = table({1, 5, 1, 3}, [](double t, double n) { return std::cos(0.3 * t + 0.7 * n); });
  Literal c =
      table({1, 5, 1, 3}, [](double t, double n) { return std::sin(0.9 * t + 0.2 * n + 0.4); });
  Literal skip = reals({2}, {0.5, -0.25});
  Literal initial = reals({1, 2, 3, 2}, std::vector<double>(12, 0));

  std::vector<Literal> operands() const { return {x, dt, a, b, c, skip, initial}; }
};

std::vector<Tensor> run_ssd(const std::vector<Tensor>& x, int64_t chunk) {
  const RecurrenceResult made =
      ssd(x[0], x[1], x[2], x[3], x[4], x[5], {.initial = x[6], .chunk = chunk});
  return {made.y, made.state};
}

TEST(Ssd, HasTheRecordedResults) {
  for (const int64_t chunk : {1, 2, 3, 5, 64}) {
    SCOPED_TRACE(chunk);
    const auto made = evaluate_all(SsdVector().operands(),
                                   [&](GraphBuilder&, const auto& x) { return run_ssd(x, chunk); });
    expect_elements(made[0], 0, {0, 0.5296630, -0.0778467, -0.1026914});
    expect_elements(made[0], 16, {0.3120677, -0.4475753, -0.1383961, -0.0462312});
    // The record has the state's axes the other way round.
    expect_elements(made[1], 0,
                    {0.2602276, 0.2291191, 0.0328099, 0.1361346, -0.2100388, -0.0208762});
  }
}

TEST(Ssd, HasTheRecordedGradients) {
  for (const int64_t chunk : {1, 2, 3, 5, 64}) {
    SCOPED_TRACE(chunk);
    const Literal dy = reals({1, 5, 2, 2}, std::vector<double>(20, 1));
    const auto d = differentiate(SsdVector().operands(), dy, [&](GraphBuilder&, const auto& x) {
      return run_ssd(x, chunk)[0];
    });
    expect_elements(d[0], 0, {0.7611430, 0.7611430, 0.1250629, 0.1250629});
    expect_elements(d[1], 0, {2.3273255, 4.1598386});
    expect_elements(d[2], 0, {-0.0510601, 0.0044808});
    expect_elements(d[3], 3, {0.6994557, 0.5535619, 0.3855994});
    expect_elements(d[4], 12, {0.6478484, 0.3662344, -0.0876254});
    expect_elements(d[5], 0, {5.6630359, 3.2095813});
  }
}

// --- chunks ------------------------------------------------------------------------------------------

struct Recurrence {
  int64_t tokens;
  bool scalar_decay, inclusive;
  std::vector<Literal> operands;  ///< r, k, v, g, [u], initial

  // log-decays -exp(N(mean, deviation)).
  Recurrence(int64_t count, bool scalar, bool reads_own, double mean, double deviation)
      : tokens(count), scalar_decay(scalar), inclusive(reads_own) {
    const auto normal = [&](Shape shape) {
      return random_literal({DType::f64, std::move(shape)}, 12, operands.size());
    };
    operands.push_back(normal({1, tokens, 2, 8}));
    operands.push_back(normal({1, tokens, 2, 8}));
    operands.push_back(normal({1, tokens, 2, 6}));
    operands.push_back(normal({1, tokens, 2, scalar ? 1 : 8}));
    for (double& g : operands[3].reals()) g = -std::exp(mean + deviation * g);
    if (!inclusive) operands.push_back(normal({2, 8}));
    operands.push_back(normal({1, 2, 8, 6}));
  }

  // The results or, with dy and dlast, the cotangents of all operands, rounded to the dtype at every op.
  std::vector<Literal> run(int64_t chunk) const {
    const Attributes attributes = recurrence_attributes(chunk, inclusive, false);
    std::vector<TensorType> types;
    for (const Literal& operand : operands) types.push_back(operand.type());
    return interpret(decomposed(get_op("linear_recurrence"), types, attributes), operands);
  }

  static Graph decomposed(const OpDef& op, const std::vector<TensorType>& types,
                          const Attributes& attributes);
};

// Down to primitives.
Graph expanded(const Graph& graph) {
  GraphBuilder builder;
  std::vector<Tensor> values(static_cast<size_t>(graph.value_count()));
  const auto value = [&](Value v) -> Tensor& { return values[static_cast<size_t>(v.id)]; };
  for (const Graph::Input& input : graph.inputs())
    value(input.value) = builder.input_like(input, graph.type(input.value));
  for (const Node& node : graph.nodes()) {
    std::vector<Tensor> operands;
    std::vector<TensorType> types;
    for (Value input : node.inputs) {
      operands.push_back(value(input));
      types.push_back(graph.type(input));
    }
    const std::vector<Tensor> made =
        node.op->decompose
            ? inline_graph(builder, expanded(decomposition(*node.op, types, node.attributes)),
                           operands)
            : builder.emit_like(node, operands);
    for (size_t i = 0; i < made.size(); ++i) value(node.outputs[i]) = made[i];
  }
  for (const Graph::Output& output : graph.outputs())
    builder.output(output.name, value(output.value));
  return builder.take();
}

Graph Recurrence::decomposed(const OpDef& op, const std::vector<TensorType>& types,
                             const Attributes& attributes) {
  return expanded(decomposition(op, types, attributes));
}

double largest_error(const Literal& a, const Literal& b) {
  double error = 0, squares = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    error = std::max(error, std::abs(a.at(i) - b.at(i)));
    squares += b.at(i) * b.at(i);
  }
  return error / std::sqrt(squares / static_cast<double>(std::max<int64_t>(1, a.elements())));
}

TEST(Recurrence, OfAnyChunkIsTheSame) {
  for (const bool scalar : {false, true})
    for (const auto& [mean, deviation] : {std::pair{-1.0, 1.0}, {2.0, 3.0}}) {
      const Recurrence call(77, scalar, scalar, mean, deviation);
      const std::vector<Literal> expected = call.run(1);
      for (const int64_t chunk : {16, 32, 64, 256}) {
        const std::vector<Literal> made = call.run(chunk);
        for (size_t i = 0; i < made.size(); ++i)
          EXPECT_LE(largest_error(made[i], expected[i]), 1e-11) << chunk << " " << scalar;
      }
    }
}

// Every exponential of every decomposition, whatever the decays.
TEST(Recurrence, TakesNoExponentialOfAPositiveNumber) {
  for (const char* name :
       {"recurrence_states", "recurrence_outputs", "recurrence_gradient", "linear_recurrence"})
    for (const Sample& sample : get_op(name).samples()) {
      SCOPED_TRACE(std::string(name) + ": " + sample.why);
      std::vector<TensorType> types;
      std::vector<Literal> operands;
      for (const SampleInput& input : sample.inputs) {
        const bool real = is_floating(input.type.dtype);
        types.push_back({real ? DType::f64 : input.type.dtype, input.type.shape});
        operands.push_back(real ? random_literal(types.back(), 3, operands.size())
                                : Literal(types.back()));
        for (double& x : operands.back().reals()) x *= 10;
      }
      const Graph graph = Recurrence::decomposed(get_op(name), types, sample.attributes);
      Graph exponents = graph;
      int found = 0;
      for (const Node& node : graph.nodes())
        if (node.op->name == "exp")
          exponents.add_output("exponent" + std::to_string(found++), node.inputs[0]);
      const std::vector<Literal> values = interpret(exponents, operands);
      for (size_t i = graph.outputs().size(); i < values.size(); ++i)
        for (const double x : values[i].reals()) EXPECT_LE(x, 0);
      EXPECT_TRUE(found > 0 || types[0].shape[1] == 0);
    }
}

// --- limits, states, resets --------------------------------------------------------------------------

TEST(Wkv6, StaysFiniteWhereAChannelForgetsAtOnce) {
  Wkv6Vector call;
  call.g.reals()[4] = -1e4;
  const auto results =
      evaluate_all(call.operands(), [](GraphBuilder&, const auto& x) { return run_wkv6(x, 4); });
  const Literal dy = reals({1, 5, 1, 2}, std::vector<double>(10, 1));
  const auto cotangents = differentiate(
      call.operands(), dy, [](GraphBuilder&, const auto& x) { return run_wkv6(x, 4)[0]; });
  for (const std::vector<Literal>& all : {results, cotangents})
    for (const Literal& each : all)
      for (const double x : each.reals()) EXPECT_TRUE(std::isfinite(x));
  EXPECT_EQ(cotangents[3].at(4), 0);
}

std::vector<Literal> tokens_of(const std::vector<Literal>& operands, int64_t first, int64_t end) {
  std::vector<Literal> result;
  for (const Literal& x : operands)
    result.push_back(
        x.shape().rank() == 4 && x.shape()[1] == 7
            ? evaluate({x},
                       [&](GraphBuilder&, const auto& in) { return slice(in[0], 1, first, end); })
            : x);
  return result;
}

TEST(Wkv6, GoesOnFromItsState) {
  const Recurrence all(7, false, false, -1, 1);
  const auto run = [](const std::vector<Literal>& operands) {
    return evaluate_all(operands, [](GraphBuilder&, const auto& x) { return run_wkv6(x, 16); });
  };
  const std::vector<Literal> whole = run(all.operands);
  for (const std::vector<int64_t>& cuts :
       {std::vector<int64_t>{0, 4, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}) {
    Literal state = all.operands[5];
    int64_t at = 0;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      std::vector<Literal> part = tokens_of(all.operands, cuts[i], cuts[i + 1]);
      part[5] = state;
      const std::vector<Literal> made = run(part);
      for (const double y : made[0].reals()) EXPECT_NEAR(y, whole[0].at(at++), 1e-12);
      state = made[1];
    }
    for (int64_t i = 0; i < state.elements(); ++i) EXPECT_NEAR(state.at(i), whole[1].at(i), 1e-12);
  }
}

// A reset is the beginning of another stream, and nothing flows back through it.
TEST(Wkv6, ResetsBeginAnew) {
  const Recurrence all(7, false, false, -1, 1);
  const Literal resets = integers(DType::boolean, {1, 7}, {0, 0, 0, 1, 0, 0, 0});
  std::vector<Literal> operands = all.operands;
  operands.push_back(resets);
  for (const int64_t chunk : {2, 3, 16}) {
    const auto call = [&](GraphBuilder&, const std::vector<Tensor>& x) {
      return wkv6(x[0], x[1], x[2], x[3], x[4], {.initial = x[5], .resets = x[6], .chunk = chunk});
    };
    const auto made = evaluate_all(operands, [&](GraphBuilder& b, const auto& x) {
      const RecurrenceResult result = call(b, x);
      return std::vector{result.y, result.state};
    });
    std::vector<Literal> second = tokens_of(all.operands, 3, 7);
    second[5] = reals({1, 2, 8, 6}, std::vector<double>(96, 0));
    const auto expected =
        evaluate_all(second, [](GraphBuilder&, const auto& x) { return run_wkv6(x, 16); });
    for (int64_t i = 0; i < expected[0].elements(); ++i)
      EXPECT_NEAR(made[0].at(3 * 12 + i), expected[0].at(i), 1e-13);
    for (int64_t i = 0; i < expected[1].elements(); ++i)
      EXPECT_NEAR(made[1].at(i), expected[1].at(i), 1e-13);
    std::vector<Literal> with_cotangent = operands;
    with_cotangent.push_back(random_literal(made[1].type(), 4, 0));
    const auto slopes = evaluate_all(with_cotangent, [&](GraphBuilder& b, const auto& x) {
      const RecurrenceResult result = call(b, {x.begin(), x.end() - 1});
      return backward(b, std::vector{result.state}, std::vector{x.back()},
                      std::vector{x[1], x[3], x[5]});
    });
    for (int64_t i = 0; i < 3 * 16; ++i) EXPECT_NEAR(slopes[0].at(i), 0, 1e-14);
    for (int64_t i = 0; i < 4 * 16; ++i) EXPECT_NEAR(slopes[1].at(i), 0, 1e-13);
    for (const double x : slopes[2].reals()) EXPECT_EQ(x, 0);
  }
}

TEST(Recurrences, NameWhatDoesNotFit) {
  GraphBuilder builder;
  const auto make = [&](Shape shape) {
    return builder.input("x" + shape.text(), Role::batch, {DType::f32, shape});
  };
  const Tensor r = make({1, 5, 2, 3}), v = make({1, 5, 2, 4}), u = make({2, 3});
  EXPECT_THAT(usage_error([&] { wkv6(r, r, v, r, {}); }), HasSubstr("bonus is an empty Tensor"));
  EXPECT_THAT(usage_error([&] { wkv6(r, r, v, r, u, {.chunk = 0}); }),
              HasSubstr("a chunk has 1 token or more, not 0"));
  EXPECT_THAT(usage_error([&] { wkv6(u, u, u, u, u); }), HasSubstr("needs 6 to 7 operands, got 5"));
  EXPECT_THAT(usage_error([&] { wkv6(r, r, v, r, u, {.initial = r}); }),
              HasSubstr("needs the initial state f32[1,2,3,4], got f32[1,5,2,3]"));
  EXPECT_THAT(usage_error([&] {
                ssd(v, make({1, 5, 2}), make({2}), r, v, make({2}));
              }),
              HasSubstr("differ in shape"));
}

// Operands of half the width leave the states as wide as they are summed in.
TEST(Recurrences, KeepTheirStatesWide) {
  GraphBuilder builder;
  const auto make = [&](Shape shape) {
    return builder.input("x" + std::to_string(builder.graph().inputs().size()), Role::batch,
                         {DType::bf16, shape});
  };
  const Tensor r = make({1, 5, 2, 3}), v = make({1, 5, 2, 4});
  const RecurrenceResult made = wkv6(r, r, v, make({1, 5, 2, 3}), make({2, 3}));
  EXPECT_EQ(made.y.dtype(), DType::bf16);
  EXPECT_EQ(made.state.type(), (TensorType{DType::f32, {1, 2, 3, 4}}));
}

}  // namespace
}  // namespace fullbore
