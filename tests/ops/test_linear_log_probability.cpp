#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ops/linear_log_probability.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

// By softmax, worked out by hand.
TEST(TokenScores, AreThoseOfTheSoftmax) {
  const double logits[] = {2, 1, 0.5, 0, -1};
  const double logs[] = {-0.57443794, -1.57443794, -2.07443794, -2.57443794, -3.57443794};
  std::vector<double> rows;
  for (int row = 0; row < 5; ++row) rows.insert(rows.end(), logits, logits + 5);
  const Literal x = reals({5, 5}, rows);
  const Literal targets = integers(DType::i32, {5}, {0, 1, 2, 3, 4});
  double entropy = 0;
  for (const double log : logs) entropy -= std::exp(log) * log;
  const auto scores = [&](bool of_row) {
    return evaluate({x, targets}, [&](auto&, const auto& in) {
      const TokenScores made = token_scores(in[0], in[1]);
      return of_row ? made.entropy : made.log_probability;
    });
  };
  for (int row = 0; row < 5; ++row) {
    EXPECT_NEAR(scores(false).at(row), logs[row], 1e-8);
    EXPECT_NEAR(scores(true).at(row), entropy, 1e-7);
  }
}

// Rows of a table behind the classes are no classes: whatever stands there changes nothing.
TEST(LinearLogProbability, KnowsNoPaddingOfTheTable) {
  const Literal hidden = random_literal({DType::f64, {4, 3}}, 5, 0);
  const Literal table = random_literal({DType::f64, {7, 3}}, 5, 1);
  const Literal targets = integers(DType::i32, {4}, {0, 4, 5, 6});
  const auto chosen = [&](bool padded) {
    return evaluate({hidden, table, targets}, [&](auto&, const auto& in) {
      return padded ? linear_log_probability(in[0], in[1], in[2], {.classes = 5}).log_probability
                    : linear_log_probability(in[0], slice(in[1], 0, 0, 5), in[2]).log_probability;
    });
  };
  for (int row = 0; row < 4; ++row) EXPECT_EQ(chosen(true).at(row), chosen(false).at(row));
  EXPECT_LT(chosen(true).at(1), 0);
  EXPECT_EQ(chosen(true).at(2), 0) << "a target that is no class";
}

// What a step over GPT-2's vocabulary has of logits and their slopes: 64 MiB and no more.
TEST(LinearLogProbability, MakesFewRowsOfManyClassesAtATime) {
  EXPECT_EQ(linear_log_probability_rows(257), (32 << 20) / (4 * 257));
  EXPECT_LE(linear_log_probability_rows(50304) * 50304 * 8, 64 << 20);
  EXPECT_EQ(linear_log_probability_rows(1 << 24), 64);
}

TEST(LinearLogProbability, RefusesWhatDoesNotFit) {
  GraphBuilder builder;
  const Tensor h = builder.input("h", Role::batch, {DType::f32, {2, 3, 4}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {5, 4}});
  const Tensor t = builder.input("t", Role::batch, {DType::i32, {2, 2}});
  try {
    linear_log_probability(h, w, t);
    FAIL() << "targets [2,2] of hidden [2,3,4]";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hidden f32[2,3,4] needs a target for each row"));
  }
}

}  // namespace
}  // namespace fullbore
