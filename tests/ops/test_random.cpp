#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "fullbore/base/philox.h"
#include "fullbore/ops/ops.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Random123 1.14, tests/kat_vectors: philox4x32 10.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  EXPECT_THAT(philox4x32({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
              ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(
      philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
      ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

int64_t words(uint64_t low, uint64_t high) { return static_cast<int64_t>(low | high << 32); }

TEST(Philox, TheOpTakesKeyAndCounterAsPairsOfWords) {
  Literal key(TensorType{DType::i64, {}}), low(TensorType{DType::i64, {}}),
      high(TensorType{DType::i64, {}});
  key.integers()[0] = words(0xa4093822U, 0x299f31d0U);
  low.integers()[0] = words(0x243f6a88U, 0x85a308d3U);
  high.integers()[0] = words(0x13198a2eU, 0x03707344U);
  const Literal bits = evaluate(
      {key, low, high}, [](GraphBuilder&, const auto& x) { return philox(x[0], x[1], x[2]); });
  EXPECT_EQ(bits.integers()[0], words(0xd16cfe09U, 0x94fdccebU));
  const Literal upper = evaluate({key, low, high}, [](GraphBuilder&, const auto& x) {
    return philox_upper(x[0], x[1], x[2]);
  });
  EXPECT_EQ(upper.integers()[0], words(0x5001e420U, 0x24126ea1U));
}

Literal scalar(double value) { return integers(DType::i64, {}, {value}); }

enum class Kind { uniform, normal };

std::vector<double> draw(Kind kind, TensorType type, double seed, double step, int64_t site,
                         double iteration = -1) {
  return elements(
      evaluate({scalar(seed), scalar(step), scalar(iteration)}, [&](GraphBuilder&, const auto& x) {
        RandomSource source{x[0], x[1], site, {}};
        if (iteration >= 0) source.iteration = x[2];
        return kind == Kind::uniform ? random_uniform(source, type) : random_normal(source, type);
      }));
}

const TensorType kMany{DType::f32, {200, 100}};

TEST(RandomUniform, LayoutOfTheCounterIsFixed) {
  // A change here changes every run that was ever recorded.
  const double step = 7;
  const int64_t site = 3;
  const std::vector<double> y = draw(Kind::uniform, {DType::f32, {2, 3}}, 11, step, site, 5);
  for (uint64_t i = 0; i < 6; ++i) {
    const uint64_t bits = philox_bits(11, i + (5ULL << 32), 7 + (3ULL << 40));
    EXPECT_EQ(y[i], static_cast<double>(bits >> 40) * 0x1p-24);
  }
  const std::vector<double> z = draw(Kind::uniform, {DType::f64, {2}}, 11, step, site);
  EXPECT_EQ(z[1], static_cast<double>(philox_bits(11, 1, 7 + (3ULL << 40)) >> 11) * 0x1p-53);
}

// Bounds of 5 standard deviations of each estimate; the seeds are fixed, so they hold or do not.
TEST(RandomUniform, HasTheMomentsOfAUniform) {
  const std::vector<double> y = draw(Kind::uniform, kMany, 1, 2, 0);
  const auto n = static_cast<double>(y.size());
  double sum = 0, squares = 0;
  for (double value : y) {
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += (value - 0.5) * (value - 0.5);
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1 / (12 * n)));
  EXPECT_NEAR(squares / n, 1.0 / 12, 5 * std::sqrt(1 / (180 * n)));
}

TEST(RandomNormal, HasTheMomentsOfANormal) {
  for (DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> y = draw(Kind::normal, {dtype, kMany.shape}, 3, 4, 1);
    const auto n = static_cast<double>(y.size());
    double sum = 0, squares = 0, cubes = 0, fourths = 0;
    for (double value : y) {
      ASSERT_TRUE(std::isfinite(value));
      sum += value;
      squares += value * value;
      cubes += value * value * value;
      fourths += value * value * value * value;
    }
    EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(1 / n));
    EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(cubes / n, 0, 5 * std::sqrt(15 / n));
    EXPECT_NEAR(fourths / n, 3, 5 * std::sqrt(96 / n));
  }
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / static_cast<double>(a.size());
}

TEST(Random, DrawsOfOtherSeedsStepsSitesAndIterationsAreIndependent) {
  const auto normals = [](double seed, double step, int64_t site, double iteration) {
    return draw(Kind::normal, kMany, seed, step, site, iteration);
  };
  const std::vector<double> base = normals(1, 2, 3, 4);
  EXPECT_EQ(base, normals(1, 2, 3, 4));
  const std::vector<std::vector<double>> others = {normals(2, 2, 3, 4), normals(1, 3, 3, 4),
                                                   normals(1, 2, 4, 4), normals(1, 2, 3, 5)};
  for (const std::vector<double>& other : others)
    EXPECT_NEAR(correlation(base, other), 0, 5 / std::sqrt(static_cast<double>(base.size())));
}

TEST(Random, NoTwoCountersMeet) {
  // Neighbours and extremes of every part of the counter.
  std::set<uint64_t> seen;
  size_t draws = 0;
  for (double step : {0.0, 1.0, 1099511627775.0})
    for (int64_t site : {int64_t{0}, int64_t{1}, (int64_t{1} << 23) - 1})
      for (double iteration : {0.0, 1.0, 2147483647.0}) {
        for (double value : draw(Kind::uniform, {DType::f64, {4}}, 9, step, site, iteration)) {
          seen.insert(static_cast<uint64_t>(value * 0x1p53));
          ++draws;
        }
      }
  EXPECT_EQ(seen.size(), draws);
}

TEST(Random, IterationZeroIsTheDrawOutsideALoop) {
  EXPECT_EQ(draw(Kind::uniform, {DType::f32, {5}}, 1, 2, 3, 0),
            draw(Kind::uniform, {DType::f32, {5}}, 1, 2, 3));
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  const int64_t n = 20000;
  for (double probability : {0.1, 0.5, 0.9}) {
    const Literal y = evaluate(
        {reals({n}, std::vector<double>(static_cast<size_t>(n), 3.0)), scalar(1), scalar(2)},
        [&](GraphBuilder&, const auto& x) {
          return dropout(x[0], probability, {x[1], x[2], 5, {}});
        });
    const double share = std::round(probability * 65536) / 65536;
    double dropped = 0;
    for (double value : y.reals()) {
      if (value == 0)
        ++dropped;
      else
        ASSERT_DOUBLE_EQ(value, 3.0 * (1 / (1 - share)));
    }
    const double deviation = std::sqrt(probability * (1 - probability) / static_cast<double>(n));
    EXPECT_NEAR(dropped / static_cast<double>(n), probability, 5 * deviation);
  }
}

TEST(Dropout, OfProbabilityZeroKeepsEverything) {
  const Literal y =
      evaluate({reals({4}, {1, 2, 3, 4}), scalar(1), scalar(2)}, [](GraphBuilder&, const auto& x) {
        return dropout(x[0], 0, {x[1], x[2], 5, {}});
      });
  EXPECT_THAT(elements(y), ElementsAre(1, 2, 3, 4));
}

// Eight neighbours have the eighths of one draw, the lowest first.
TEST(Dropout, KeepsWhereAnEighthOfADrawReachesTheThreshold) {
  const int64_t n = 23, iteration = 4;
  const Literal kept =
      evaluate({reals({n}, std::vector<double>(n, 1.0)), scalar(17), scalar(9), scalar(iteration)},
               [&](GraphBuilder&, const auto& x) {
                 return not_equal(dropout(x[0], 0.3, {x[1], x[2], 5, x[3]}), 0.0);
               });
  int dropped = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = philox_halves(17, static_cast<uint64_t>(i / 8 + (iteration << 32)),
                                    9 + (uint64_t{5} << 40));
    const uint64_t number = (bits[i % 8 / 4] >> (16 * (i % 4))) & 0xFFFF;
    const bool expected = number >= 19661;  // 0.3 * 2^16, rounded
    EXPECT_EQ(kept.at(i) != 0, expected) << i;
    dropped += !expected;
  }
  EXPECT_GT(dropped, 0);
}

TEST(Dropout, MaskDoesNotDependOnTheDType) {
  const auto mask = [](DType dtype) {
    const TensorType type{dtype, {64}};
    return elements(
        evaluate({Literal::of(type, std::vector<double>(64, 1.0)), scalar(1), scalar(2)},
                 [](GraphBuilder&, const auto& x) {
                   return not_equal(dropout(x[0], 0.3, {x[1], x[2], 5, {}}), 0.0);
                 }));
  };
  EXPECT_EQ(mask(DType::f32), mask(DType::bf16));
  EXPECT_EQ(mask(DType::f32), mask(DType::f64));
}

TEST(Random, RefusesASourceWithoutSeed) {
  GraphBuilder builder;
  const Tensor step = builder.input("step", Role::control, {DType::i64, {}});
  EXPECT_EQ(usage_error([&] {
              random_uniform({{}, step, 0, {}}, kMany, SourceLoc{"models/example.cpp", 9});
            }),
            "random_uniform: the source's seed is an empty Tensor (models/example.cpp:9)");
}

}  // namespace
}  // namespace fullbore
