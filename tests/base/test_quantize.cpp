#include "fullbore/base/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;

struct Rows {
  std::vector<int8_t> q;
  std::vector<float> scales;
  bool finite;
};

Rows quantized(const std::vector<float>& weights, int64_t rows) {
  const auto columns = static_cast<int64_t>(weights.size()) / rows;
  Rows result{std::vector<int8_t>(weights.size(), 99),
              std::vector<float>(static_cast<size_t>(rows), -1), false};
  result.finite =
      quantize_rows(weights.data(), rows, columns, result.q.data(), result.scales.data());
  return result;
}

TEST(Quantize, TheLargestOfEachRowBecomes127) {
  const Rows rows = quantized({1.1F, -2, 0.5F, 100, 30, -25}, 2);
  EXPECT_TRUE(rows.finite);
  EXPECT_THAT(rows.q, ElementsAre(70, -127, 32, 127, 38, -32));  // 69.85, 31.75; 38.1, -31.75
  EXPECT_THAT(rows.scales, ElementsAre(2.0F / 127, 100.0F / 127));
}

TEST(Quantize, HalvesGoToTheEvenNeighbour) {
  EXPECT_THAT(quantized({127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F}, 1).q,
              ElementsAre(127, 0, 2, 2, 0, -2, -126));
}

TEST(Quantize, RowsOfZerosAndOfTinyNumbersHaveScale1) {
  const Rows rows = quantized({0, -0.0F, 1e-40F, -1e-37F}, 2);
  EXPECT_THAT(rows.q, ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(rows.scales, ElementsAre(1, 1));
}

TEST(Quantize, TheLargestNumbersThereAreHaveAScale) {
  const float largest = std::numeric_limits<float>::max();
  const Rows rows = quantized({largest, -largest, largest / 4}, 1);
  EXPECT_TRUE(rows.finite);
  EXPECT_THAT(rows.q, ElementsAre(127, -127, 32));
}

TEST(Quantize, ValuesThatAreNotFiniteAreRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {infinity, -infinity, nan}) {
    for (size_t place = 0; place < 3; ++place) {
      std::vector<float> weights = {1, 2, 3, 4, 5, 6};
      weights[3 + place] = bad;
      const Rows rows = quantized(weights, 2);
      EXPECT_FALSE(rows.finite) << bad << " at " << place;
      EXPECT_EQ(rows.scales[1], -1) << "written";
      EXPECT_EQ(rows.q[3], 99) << "written";
    }
    EXPECT_TRUE(std::isnan(int8_scale(bad, DType::f32)));
  }
}

TEST(Quantize, NoElementIsFurtherFromItsFormThanHalfAScale) {
  PhiloxStream draws(11);
  for (int row = 0; row < 1000; ++row) {
    std::vector<float> weights(17);
    const double size = std::exp(20 * draws.normal());
    for (float& weight : weights) weight = static_cast<float>(size * draws.normal());
    const Rows rows = quantized(weights, 1);
    ASSERT_TRUE(rows.finite);
    for (size_t i = 0; i < weights.size(); ++i) {
      ASSERT_GE(rows.q[i], -127);
      const double scale = static_cast<double>(rows.scales[0]);
      ASSERT_LE(std::abs(static_cast<double>(weights[i]) - scale * rows.q[i]),
                scale * (0.5 + 127 * 0x1p-23));
    }
  }
}

}  // namespace
}  // namespace fullbore
