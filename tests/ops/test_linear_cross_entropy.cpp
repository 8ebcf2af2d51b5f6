#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/ops/ops.h"
#include "tests/ops/differentiate.h"
#include "tests/support/gradcheck.h"

/// Label smoothing, z-loss and ignored classes of cross_entropy, and linear_cross_entropy beside the
/// product and the loss apart.
namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 7;
constexpr int64_t kWidth = 3;
constexpr int64_t kClasses = 5;

// Of one row by the textbook: the cross-entropy of the smoothed target and the softmax.
double textbook_loss(const std::vector<double>& logits, int64_t target,
                     const CrossEntropyOptions& options) {
  double normaliser = 0;
  for (const double x : logits) normaliser += std::exp(x);
  double loss = options.z_loss * std::log(normaliser) * std::log(normaliser);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double even = options.label_smoothing / static_cast<double>(logits.size());
    const double wanted =
        even + (static_cast<int64_t>(i) == target ? 1 - options.label_smoothing : 0);
    loss -= wanted * std::log(std::exp(logits[i]) / normaliser);
  }
  return loss;
}

const CrossEntropyOptions kOptions[] = {
    {},
    {.label_smoothing = 0.1},
    {.z_loss = 0.3},
    {.label_smoothing = 0.3, .z_loss = 1e-4, .ignore_index = 3},
};

struct Operands {
  Literal hidden = random_literal({DType::f64, {kRows, kWidth}}, 11, 0);
  Literal weight = random_literal({DType::f64, {kClasses, kWidth}}, 11, 1);
  Literal targets = integers(DType::i32, {kRows}, {4, 0, 3, -1, 2, 3, 5});
  Literal weights = random_literal({DType::f64, {kRows}}, 11, 2);

  std::vector<double> logits(int64_t row) const {
    std::vector<double> result;
    for (int64_t v = 0; v < kClasses; ++v) {
      double sum = 0;
      for (int64_t i = 0; i < kWidth; ++i)
        sum += hidden.at(row * kWidth + i) * weight.at(v * kWidth + i);
      result.push_back(sum);
    }
    return result;
  }
  bool counts(int64_t row, const CrossEntropyOptions& options) const {
    const auto target = static_cast<int64_t>(targets.at(row));
    return target >= 0 && target < kClasses && target != options.ignore_index;
  }
  double loss(int64_t row, const CrossEntropyOptions& options) const {
    if (!counts(row, options)) return 0;
    return textbook_loss(logits(row), static_cast<int64_t>(targets.at(row)), options);
  }
};

TEST(CrossEntropyOptions, AreTheTextbooks) {
  const Operands x;
  for (const CrossEntropyOptions& options : kOptions) {
    const Literal losses = evaluate({x.hidden, x.weight, x.targets}, [&](auto&, const auto& in) {
      return cross_entropy(linear(in[0], in[1]), in[2], options);
    });
    for (int64_t row = 0; row < kRows; ++row)
      EXPECT_NEAR(losses.at(row), x.loss(row, options), 1e-13) << row;
  }
}

TEST(LinearCrossEntropy, IsTheWeightedSumOfTheTextbooksLosses) {
  const Operands x;
  for (const CrossEntropyOptions& options : kOptions)
    for (const int64_t rows : {1, 2, 3, 7, 100}) {
      double plain = 0, weighted = 0;
      for (int64_t row = 0; row < kRows; ++row) {
        plain += x.loss(row, options);
        weighted += x.weights.at(row) * x.loss(row, options);
      }
      const auto sum = [&](bool with_weights) {
        return evaluate({x.hidden, x.weight, x.targets, x.weights},
                        [&](auto&, const auto& in) {
                          return linear_cross_entropy(in[0], in[1], in[2],
                                                      {.loss = options,
                                                       .weights = with_weights ? in[3] : Tensor(),
                                                       .rows = rows});
                        })
            .at(0);
      };
      EXPECT_NEAR(sum(false), plain, 1e-12) << rows;
      EXPECT_NEAR(sum(true), weighted, 1e-12) << rows;
    }
}

TEST(LinearCrossEntropy, HasTheGradientsOfProductAndLossApart) {
  const Operands x;
  const std::vector<Literal> inputs = {x.hidden, x.weight, x.targets, x.weights};
  const Literal dy = reals({}, {-1.75});
  for (const CrossEntropyOptions& options : kOptions) {
    const auto apart = differentiate(inputs, dy, [&](auto&, const auto& in) {
      return reduce_sum(cross_entropy(linear(in[0], in[1]), in[2], options) * in[3], {0});
    });
    for (const int64_t rows : {1, 3, 7}) {
      const auto together = differentiate(inputs, dy, [&](auto&, const auto& in) {
        return linear_cross_entropy(in[0], in[1], in[2],
                                    {.loss = options, .weights = in[3], .rows = rows});
      });
      EXPECT_EQ(compare_literals(apart, together, 1e-12), "") << rows;
    }
  }
}

TEST(LinearCrossEntropy, TakesRowsInAnyNumberOfAxes) {
  const Operands x;
  const auto sum = [&](Shape rows) {
    return evaluate({x.hidden, x.weight, x.targets},
                    [&](auto&, const auto& in) {
                      return linear_cross_entropy(
                          reshape(in[0], rows.inserted(rows.rank(), kWidth)), in[1],
                          reshape(in[2], rows));
                    })
        .at(0);
  };
  EXPECT_EQ(sum({kRows}), sum({1, 7, 1}));
  const Literal one = evaluate({x.hidden, x.weight}, [&](GraphBuilder& builder, const auto& in) {
    return linear_cross_entropy(squeeze(slice(in[0], 0, 1, 2), 0), in[1],
                                full(builder, {DType::i64, {}}, 0));
  });
  EXPECT_NEAR(one.at(0), x.loss(1, {}), 1e-13);
}

// By itself it makes blocks of 32 MiB, but of 512 rows at least.
TEST(LinearCrossEntropy, ChoosesItsBlocksByTheirSize) {
  EXPECT_EQ(linear_cross_entropy_rows(65), (32 << 20) / (4 * 65));
  EXPECT_EQ(linear_cross_entropy_rows(8192), 1024);
  EXPECT_EQ(linear_cross_entropy_rows(50257), 512);
}

TEST(LinearCrossEntropy, NamesWhatDoesNotFit) {
  GraphBuilder builder;
  const Tensor hidden = builder.input("hidden", Role::batch, {DType::f32, {2, 3, 4}});
  const Tensor weight = builder.input("weight", Role::batch, {DType::f32, {5, 4}});
  const Tensor targets = builder.input("targets", Role::batch, {DType::i32, {2, 3}});
  const Tensor flat = builder.input("flat", Role::batch, {DType::i32, {6}});
  const auto message = [&](Tensor h, Tensor w, Tensor t, const LinearCrossEntropyOptions& options) {
    return usage_error([&] { linear_cross_entropy(h, w, t, options); });
  };
  EXPECT_THAT(message(hidden, weight, flat, {}),
              HasSubstr("hidden f32[2,3,4] needs targets for each row, got targets i32[6]"));
  EXPECT_THAT(message(hidden, weight, targets, {.weights = flat}),
              HasSubstr("hidden f32[2,3,4] needs weights for each row, got weights i32[6]"));
  EXPECT_THAT(message(hidden, weight, targets, {.rows = -3}),
              HasSubstr("at a time or more, not -3"));
  EXPECT_THAT(message(hidden, hidden, targets, {}), HasSubstr("needs weight of rank 2"));
  EXPECT_THAT(message({}, weight, targets, {}), HasSubstr("hidden is an empty Tensor"));
  EXPECT_THAT(message(full(builder, {DType::f32, {}}, 0), weight, targets, {}),
              HasSubstr("hidden is a scalar"));
}

}  // namespace
}  // namespace fullbore
