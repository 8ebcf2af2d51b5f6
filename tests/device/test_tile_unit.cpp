#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/attention/tile_unit.h"
#include "fullbore/device/cpu/kernels/elements.h"

/// The loops over tiles of attention, alone, on every vector unit of this processor.
namespace fullbore {
namespace {

using namespace fullbore::cpu;  // NOLINT: a test of it

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<const TileUnit*> units() {
  std::vector<const TileUnit*> units;
  for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512})
    if (unit <= this_processor().vector_unit) units.push_back(&tile_unit(unit));
#if defined(__x86_64__)
  if (this_processor().avx512_bf16) units.push_back(&kTileAvx512Bf16);
#endif
  return units;
}

using Row = std::vector<float>;

// e^x of each, as exponentials of scores.
Row exponentials(const TileUnit& unit, Row x) {
  x.resize(cpu::round_up(static_cast<int64_t>(x.size()), kTileQueries));
  const Row shift(kTileQueries, 0);
  Row sum(kTileQueries, 0);
  unit.exponentiate({x.data(), static_cast<int64_t>(x.size()) / kTileQueries, kTileQueries},
                    shift.data(), nullptr, sum.data(), nullptr);
  return x;
}

double ulps(double exact, float got) {
  const double spacing = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
  return std::abs(exact - static_cast<double>(got)) / spacing;
}

TEST(TileUnit, ExponentialsAreRightToTwoUlps) {
  Row x;
  PhiloxStream draws(1);
  for (int i = 0; i < 100000; ++i)
    x.push_back(static_cast<float>(i % 2 == 0 ? draws.uniform(-104, 88.7) : draws.uniform(-1, 0)));
  for (const TileUnit* unit : units()) {
    const Row found = exponentials(*unit, x);
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, ulps(std::exp(static_cast<double>(x[i])), found[i]));
    EXPECT_LE(worst, 2);
  }
}

TEST(TileUnit, ExponentialsOfTheExtremes) {
  for (const TileUnit* unit : units()) {
    const Row found =
        exponentials(*unit, {0, -0.0F, -kInfinity, kInfinity, NAN, -200, 100, -1e30F});
    EXPECT_EQ(found[0], 1);
    EXPECT_EQ(found[1], 1);
    EXPECT_EQ(found[2], 0);
    EXPECT_EQ(found[3], kInfinity);
    EXPECT_TRUE(std::isnan(found[4]));
    EXPECT_EQ(found[5], 0);
    EXPECT_EQ(found[6], kInfinity);
    EXPECT_EQ(found[7], 0);
  }
}

// A product that is too small for its exponent sets the flag, and takes many processors a hundred times as long.
TEST(TileUnit, ExponentialsThatAreZeroUnderflowNowhere) {
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
  for (const TileUnit* unit : units()) {
    const Row kept =
        exponentials(*unit, {-103.97F, -103, -90});  // ln of half the smallest: -103.9721
    EXPECT_EQ(kept[0], kSmallest);
    EXPECT_EQ(kept[1], kSmallest);
    EXPECT_NEAR(kept[2] / kSmallest, 584744, 1);
    std::feclearexcept(FE_ALL_EXCEPT);
    const Row found = exponentials(*unit, {-103.981F, -104, -200, -1e30F, -kInfinity});
    EXPECT_EQ(std::fetestexcept(FE_UNDERFLOW), 0);
    for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(found[i] == 0 && !std::signbit(found[i])) << i;
  }
}

TEST(TileUnit, FinishTakesLogarithmsAndReciprocals) {
  Row sum = {1, 2, 0.75F, 1e-30F, 1e30F, 0, NAN, 3.5F};
  sum.resize(kGroupQueries, 1);
  Row shift(kGroupQueries, 0.25F);
  shift[5] = 0;
  for (const TileUnit* unit : units()) {
    Row log(kGroupQueries), inverse(kGroupQueries);
    unit->finish(kGroupQueries, shift.data(), sum.data(), 2, log.data(), inverse.data());
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_NEAR(log[i], 0.25 + std::log(static_cast<double>(sum[i])),
                  6e-8 * (1 + std::abs(log[i])));
      EXPECT_FLOAT_EQ(inverse[i], 2 / sum[i]);
    }
    EXPECT_EQ(log[5], 0);
    EXPECT_EQ(inverse[5], 0);
    EXPECT_TRUE(std::isnan(log[6]));
    EXPECT_TRUE(std::isnan(inverse[6]));
  }
}

TEST(TileUnit, MaskScalesAddsAndCuts) {
  constexpr int64_t kKeys = 5;
  Row bias(kKeys * kTileQueries, 3), seen(kGroupQueries);
  bias[2 * kTileQueries + 7] = -kInfinity;
  for (size_t q = 0; q < seen.size(); ++q) seen[q] = static_cast<float>(q % 7);
  for (const TileUnit* unit : units()) {
    Row scores(kKeys * kTileQueries), largest(kGroupQueries, -kInfinity);
    for (size_t i = 0; i < scores.size(); ++i) {
      const size_t key = i / kTileQueries;
      scores[i] = static_cast<float>(key);
    }
    unit->mask({scores.data(), kKeys, kGroupQueries}, {-2, bias.data(), seen.data()},
               largest.data());
    for (int64_t key = 0; key < kKeys; ++key)
      for (int64_t q = 0; q < kGroupQueries; ++q) {
        const bool visible = key < q % 7 && !(key == 2 && q == 7);
        EXPECT_EQ(scores[static_cast<size_t>(key * kTileQueries + q)],
                  visible ? 3 - 2 * static_cast<float>(key) : -kInfinity);
      }
    for (size_t q = 0; q < largest.size(); ++q) EXPECT_EQ(largest[q], q % 7 == 0 ? -kInfinity : 3);
    EXPECT_EQ(scores[static_cast<size_t>(kGroupQueries)], 0) << "beyond the tile";
  }
}

TEST(TileUnit, RescaleFollowsTheLargest) {
  const Row largest = [] {
    Row x(kGroupQueries, 2);
    x[1] = 5;
    x[2] = -kInfinity;
    x[3] = -300;
    return x;
  }();
  for (const TileUnit* unit : units()) {
    Row shift(kGroupQueries, 2), sum(kGroupQueries, 1), factor(kGroupQueries);
    shift[2] = shift[3] = sum[2] = sum[3] = 0;  // nothing seen so far
    EXPECT_TRUE(
        unit->rescale(kGroupQueries, largest.data(), shift.data(), sum.data(), factor.data()));
    EXPECT_EQ(factor[0], 1);
    EXPECT_FLOAT_EQ(factor[1], std::exp(-3.0F));
    EXPECT_FLOAT_EQ(sum[1], std::exp(-3.0F));
    EXPECT_EQ(factor[2], 1);
    EXPECT_EQ(shift[2], 0);
    EXPECT_EQ(factor[3], 1);
    EXPECT_EQ(shift[3], -300);
    EXPECT_FALSE(
        unit->rescale(kGroupQueries, largest.data(), shift.data(), sum.data(), factor.data()));
  }
}

TEST(TileUnit, DrawsAreThoseOfPhilox) {
  const TileDraws draws{.first = 0xfffffff0U,
                        .stride = 1000003,
                        .words = {7, 0x89abcdefU, 5},
                        .key = {0x12345678U, 0x9abcdef0U},
                        .threshold = 1 << 15,
                        .kept = 2};
  constexpr uint32_t kKeys = 13;  // a draw and five eighths of one
  for (const TileUnit* unit : units()) {
    Row factors((kKeys + 1) * kTileQueries, -1);
    unit->draw({factors.data(), kKeys, 2 * kGroupQueries}, draws);
    uint32_t kept = 0;
    for (uint32_t key = 0; key < kKeys; ++key)
      for (uint32_t q = 0; q < 2 * kGroupQueries; ++q) {
        const auto bits = philox_halves(
            0x9abcdef012345678U, (draws.first + q * draws.stride + key / 8) | (uint64_t{7} << 32),
            0x589abcdefU);
        const uint64_t number = bits[key % 8 / 4] >> (key % 4 * 16) & 0xffff;
        const float expected = number >= draws.threshold ? 2 : 0;
        EXPECT_EQ(factors[key * kTileQueries + q], expected) << key << " " << q;
        kept += expected > 0;
      }
    EXPECT_TRUE(kept > kKeys * 10 && kept < kKeys * 22);
    EXPECT_EQ(factors[2 * kGroupQueries], -1) << "beyond the tile";
    EXPECT_EQ(factors[kKeys * kTileQueries], -1) << "beyond its keys";
  }
}

TEST(TileUnit, TruthsBecomeZerosAndMinusInfinities) {
  std::vector<uint8_t> truths(37, 0);
  for (const TileUnit* unit : units()) {
    Row to(37);
    EXPECT_FALSE(unit->truths(truths.data(), 37, to.data()));
    for (size_t at : {0U, 15U, 31U, 36U}) {
      truths[at] = 1;
      EXPECT_TRUE(unit->truths(truths.data(), 37, to.data())) << at;
      for (size_t i = 0; i < 37; ++i) EXPECT_EQ(to[i], i == at ? 0 : -kInfinity);
      truths[at] = 0;
    }
  }
}

}  // namespace
}  // namespace fullbore
