#include "workloads/peptide/centroid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fullbore::peptide {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Centroid, OnePeakForEachMaximum) {
  std::vector<double> mz{100.00, 100.01, 100.02, 100.03, 100.04, 100.05, 100.06};
  std::vector<float> intensity{0, 2, 4, 2, 1, 3, 0};
  centroid(mz, intensity);
  EXPECT_THAT(intensity, ElementsAre(4, 3));
  // Samples below a third of the height do not count, nor do those behind a rise.
  EXPECT_THAT(
      mz, ElementsAre(DoubleNear(100.02, 1e-12), DoubleNear((100.04 * 1 + 100.05 * 3) / 4, 1e-12)));
}

TEST(Centroid, APlateauIsOnePeakAndZerosAreNone) {
  std::vector<double> mz{100.00, 100.01, 100.02, 100.03, 100.04};
  std::vector<float> intensity{0, 5, 5, 0, 0};
  centroid(mz, intensity);
  EXPECT_THAT(intensity, ElementsAre(5));
  EXPECT_THAT(mz, ElementsAre(DoubleNear(100.015, 1e-12)));
}

TEST(Centroid, AGapEndsAPeakAndOrderDoesNotMatter) {
  std::vector<double> mz{300.00, 200.01, 200.00};
  std::vector<float> intensity{3, 5, 4};
  centroid(mz, intensity);
  EXPECT_THAT(intensity, ElementsAre(5, 3));
  EXPECT_THAT(
      mz, ElementsAre(DoubleNear((200.01 * 5 + 200.00 * 4) / 9, 1e-12), DoubleNear(300.00, 1e-12)));
}

TEST(Centroid, AGaussianIsFoundBetweenItsSamples) {
  constexpr double kCentre = 500.0123;
  std::vector<double> mz;
  std::vector<float> intensity;
  for (int i = -20; i <= 20; ++i) {
    mz.push_back(500.01 + 0.004 * i);
    intensity.push_back(
        static_cast<float>(1e4 * std::exp(-0.5 * std::pow((mz.back() - kCentre) / 0.02, 2))));
  }
  centroid(mz, intensity);
  ASSERT_EQ(mz.size(), 1U);
  // The samples that count begin and end up to one apart from the centre's symmetry.
  EXPECT_NEAR(mz[0], kCentre, 0.004 / 2);
}

TEST(Centroid, NothingStaysNothing) {
  std::vector<double> mz;
  std::vector<float> intensity;
  centroid(mz, intensity);
  EXPECT_TRUE(mz.empty());
}

}  // namespace
}  // namespace fullbore::peptide
