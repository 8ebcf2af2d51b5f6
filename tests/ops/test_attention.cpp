#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "fullbore/ops/random.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using ::testing::DoubleEq;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Operands {
  Literal q, k, v;

  Operands(int64_t heads, int64_t groups, int64_t queries, int64_t keys)
      : q(random_literal({DType::f64, {2, heads, queries, 3}}, 6, 0)),
        k(random_literal({DType::f64, {2, groups, keys, 3}}, 6, 1)),
        v(random_literal({DType::f64, {2, groups, keys, 3}}, 6, 2)) {}
};

Literal attend(const Operands& o, AttentionOptions options) {
  return evaluate({o.q, o.k, o.v}, [&](GraphBuilder&, const auto& x) {
    return attention(x[0], x[1], x[2], options);
  });
}
Literal attend_masked(const Operands& o, const Literal& mask, AttentionOptions options = {}) {
  return evaluate({o.q, o.k, o.v, mask}, [&](GraphBuilder&, const auto& x) {
    AttentionOptions all = options;
    all.mask = x[3];
    return attention(x[0], x[1], x[2], all);
  });
}
void expect_near(const Literal& a, const Literal& b, double tolerance = 1e-13) {
  ASSERT_EQ(a.type(), b.type());
  for (int64_t i = 0; i < a.elements(); ++i) EXPECT_NEAR(a.at(i), b.at(i), tolerance);
}

TEST(Attention, IsItsDefinition) {
  // One query that looks at two keys with scores 0 and log 3.
  const Literal y =
      evaluate({reals({1, 1, 1, 1}, {2}), reals({1, 1, 2, 1}, {0, std::log(3) / 2}),
                reals({1, 1, 2, 1}, {10, 20})},
               [](GraphBuilder&, const auto& x) { return attention(x[0], x[1], x[2]); });
  EXPECT_THAT(elements(y), ElementsAre(DoubleEq(17.5)));
}

TEST(Attention, ScalesByTheWidthOfAHead) {
  const Operands o(2, 2, 4, 4);
  expect_near(attend(o, {}), attend(o, {.scale = 1 / std::sqrt(3)}));
  const Literal flat = attend(o, {.scale = 0});
  EXPECT_NEAR(flat.at(0), (o.v.at(0) + o.v.at(3) + o.v.at(6) + o.v.at(9)) / 4, 1e-14);
}

// Query t of T sees keys s <= t + S - T.
Literal causal_mask(int64_t queries, int64_t keys) {
  std::vector<double> visible;
  for (int64_t t = 0; t < queries; ++t)
    for (int64_t s = 0; s < keys; ++s) visible.push_back(s <= t + keys - queries);
  return integers(DType::boolean, {1, 1, queries, keys}, visible);
}

TEST(Attention, CausalIsAMaskAlignedAtTheEnd) {
  for (const auto& [queries, keys] : {std::pair{5, 5}, std::pair{2, 7}, std::pair{6, 3}}) {
    const Operands o(2, 2, queries, keys);
    expect_near(attend(o, {.causal = true}), attend_masked(o, causal_mask(queries, keys)));
  }
}

TEST(Attention, CausalWithACacheEqualsTheLastRowsOfTheWhole) {
  const Operands whole(2, 2, 6, 6);
  Operands last = whole;
  last.q = evaluate({whole.q}, [](GraphBuilder&, const auto& x) { return slice(x[0], 2, 4, 6); });
  const Literal expected =
      evaluate({attend(whole, {.causal = true})},
               [](GraphBuilder&, const auto& x) { return slice(x[0], 2, 4, 6); });
  expect_near(attend(last, {.causal = true}), expected);
}

TEST(Attention, SharedKeysEqualRepeatedKeys) {
  const Operands shared(4, 2, 5, 5);
  Operands repeated = shared;
  const auto repeat = [](const Literal& x) {
    return evaluate({x}, [](GraphBuilder&, const auto& in) {
      return reshape(broadcast_to(expand_dims(in[0], 2), {2, 2, 2, 5, 3}), {2, 4, 5, 3});
    });
  };
  repeated.k = repeat(shared.k);
  repeated.v = repeat(shared.v);
  expect_near(attend(shared, {.causal = true}), attend(repeated, {.causal = true}));
}

TEST(Attention, TruthMaskEqualsABiasOfMinusInfinity) {
  const Operands o(2, 2, 3, 4);
  const Literal mask = integers(DType::boolean, {2, 1, 1, 4}, {1, 1, 0, 1, 0, 1, 1, 0});
  std::vector<double> bias;
  for (double visible : elements(mask)) bias.push_back(visible != 0 ? 0 : -HUGE_VAL);
  expect_near(attend_masked(o, mask), attend_masked(o, reals({2, 1, 1, 4}, bias)));
}

TEST(Attention, RowsWithoutKeysAreZeroWithZeroGradient) {
  const Operands o(2, 2, 4, 2);  // the first two queries of a causal call see nothing
  const auto call = [](GraphBuilder&, const std::vector<Tensor>& x) {
    return attention(x[0], x[1], x[2], {.causal = true});
  };
  const Literal y = evaluate({o.q, o.k, o.v}, call);
  const Literal dy = random_literal(y.type(), 7, 0);
  const auto cotangents = differentiate({o.q, o.k, o.v}, dy, call);
  for (int64_t head = 0; head < 4; ++head)
    for (int64_t i = 0; i < 2 * 3; ++i) {
      EXPECT_EQ(y.at(head * 12 + i), 0);
      EXPECT_EQ(cotangents[0].at(head * 12 + i), 0);
    }
  for (const Literal& cotangent : cotangents)
    for (double value : elements(cotangent)) EXPECT_TRUE(std::isfinite(value));
}

TEST(Attention, DropsWeightsWhoseDrawIsBelowTheProbability) {
  const Operands o(2, 2, 5, 5);
  const Literal seed = integers(DType::i64, {}, {9});
  const Literal step = integers(DType::i64, {}, {100});
  const Literal y = evaluate({o.q, o.k, o.v, seed, step}, [](GraphBuilder&, const auto& x) {
    return attention(x[0], x[1], x[2],
                     {.dropout = 0.5, .random = {.seed = x[3], .step = x[4], .site = 2}});
  });
  const Literal expected = evaluate({o.q, o.k, o.v, seed, step}, [](GraphBuilder&, const auto& x) {
    const Tensor weights = softmax(matmul(x[0], x[1], {.transpose_b = true}) * (1 / std::sqrt(3)));
    // Rows of one draw for five keys: the mask of eight.
    const std::vector<Tensor> source{x[3], x[4]};
    const Tensor kept = slice(dropout_mask(source, 2, 0.5, {2, 2, 5, 8}, {}), 3, 0, 5);
    return matmul(select(kept, weights * 2.0, 0.0), x[2]);
  });
  expect_near(y, expected);
  const Literal plain = attend(o, {});
  bool differs = false;
  for (int64_t i = 0; i < y.elements(); ++i) differs |= std::abs(y.at(i) - plain.at(i)) > 1e-3;
  EXPECT_TRUE(differs);
}

TEST(Attention, NarrowOperandsHaveScoresInF32) {
  const TensorType type{DType::bf16, {1, 2, 4, 8}};
  const Attributes attributes{
      {"causal", true}, {"masked", false}, {"scale", 0.5}, {"dropout", 0.0}, {"site", int64_t{0}}};
  const Graph graph = decomposition(get_op("attention"), std::vector{type, type, type}, attributes);
  int softmaxes = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "softmax") continue;
    EXPECT_EQ(graph.type(node.inputs[0]).dtype, DType::f32);
    ++softmaxes;
  }
  EXPECT_EQ(softmaxes, 1);
  EXPECT_EQ(graph.type(graph.outputs()[0].value), type);
}

// What a causal mask hides is not counted: the roofline would be twice what it can be.
TEST(Attention, CostsWhatItsMaskLeaves) {
  const TensorType type{DType::f32, {2, 3, 64, 16}};
  const auto flops = [&](bool causal) {
    GraphBuilder builder;
    const Tensor q = builder.input("q", Role::batch, type);
    builder.output("y", attention(q, q, q, {.causal = causal}));
    return graph_cost(builder.graph()).flops;
  };
  EXPECT_GE(flops(false), 2 * 3 * 64 * 64 * 4 * 16);
  EXPECT_DOUBLE_EQ(flops(true) / flops(false), 65 / 128.0);
}

TEST(Attention, NamesWhatDoesNotFit) {
  GraphBuilder builder;
  const auto make = [&](Shape shape) {
    return builder.input("x" + shape.text(), Role::batch, {DType::f32, shape});
  };
  const Tensor q = make({1, 4, 5, 8});
  const Tensor k = make({1, 3, 5, 8});
  EXPECT_THAT(usage_error([&] { attention(q, k, k); }), HasSubstr("4 heads are no multiple of 3"));
  EXPECT_THAT(usage_error([&] { attention(q, q, q, {.mask = k}); }),
              HasSubstr("needs a mask [1 or 1,4 or 1,5 or 1,5], got f32[1,3,5,8]"));
  EXPECT_THAT(usage_error([&] { attention(q, q, q, {.dropout = 0.1}); }),
              HasSubstr("the source's seed is an empty Tensor"));
  EXPECT_THAT(usage_error([&] { attention(make({}), q, q); }), HasSubstr("needs q of rank 4"));
}

}  // namespace
}  // namespace fullbore
