// Many random draws at once: the bits of single ones, on every kind of vector instructions, near the exact
// formula, and distributed as they should be.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "fullbore/base/draw_unit.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

constexpr uint64_t kOnes = ~uint64_t{0};

// Pairs of bits for one normal: the corners of both fractions, and many from between.
struct Pairs {
  std::vector<uint64_t> radius;
  std::vector<uint64_t> angle;
};
Pairs pairs() {
  const uint64_t unit = uint64_t{1} << 11;  // 2^-53
  std::vector<uint64_t> corners = {0, 1, unit - 1, unit, 2 * unit, kOnes, kOnes - unit};
  // Around every quarter turn, and where the mantissa of the logarithm's argument begins anew.
  for (const double fraction : {0.125, 0.25, 0.5, 0.625, 0.75, 0.875, 1 - std::sqrt(0.5)})
    for (int step = -2; step <= 2; ++step)
      corners.push_back((static_cast<uint64_t>(fraction * 0x1p53) + static_cast<uint64_t>(step))
                        << 11);
  Pairs result;
  for (const uint64_t a : corners)
    for (const uint64_t b : corners) {
      result.radius.push_back(a);
      result.angle.push_back(b);
    }
  PhiloxStream draws(1);
  while (result.radius.size() < 50000 || result.radius.size() % kDrawLanes != 0) {
    // Small fractions, too: their logarithms are those of numbers next to 1.
    result.radius.push_back(draws.bits() >> (result.radius.size() % 60));
    result.angle.push_back(draws.bits() >> (result.angle.size() % 53));
  }
  return result;
}

TEST(RandomDraws, BitsArePhilox) {
  for (const DrawUnit& unit : draw_units())
    for (const uint64_t position : {uint64_t{0}, uint64_t{7}, (uint64_t{1} << 32) - 20, kOnes - 20})
      for (const uint64_t step : {uint64_t{1}, uint64_t{2}}) {
        std::vector<uint64_t> found(40);
        unit.bits(0x123456789abcdef0U, 0xfedcba9876543210U, position, step, found.data(),
                  found.size());
        for (size_t i = 0; i < found.size(); ++i)
          ASSERT_EQ(found[i],
                    philox_bits(0x123456789abcdef0U, position + step * i, 0xfedcba9876543210U))
              << unit.name << " " << i;
      }
}

// With thresholds that are among the eighths: what is equal has been reached.
TEST(RandomDraws, EighthsOfTheBitsAreCompared) {
  const auto eighth = [](size_t i) {
    const auto bits = philox_halves(0x123456789abcdef0U, kOnes - 20 + i / 8, 0xfedcba9876543210U);
    return static_cast<uint16_t>(bits[i % 8 / 4] >> (16 * (i % 4)));
  };
  for (const DrawUnit& unit : draw_units())
    for (const uint16_t threshold :
         {uint16_t{0}, uint16_t{6554}, uint16_t{65535}, eighth(0), eighth(7), eighth(318)}) {
      std::vector<uint8_t> found(8 * 40);
      unit.compare(0x123456789abcdef0U, 0xfedcba9876543210U, kOnes - 20, threshold, found.data(),
                   40);
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(found[i], eighth(i) >= threshold ? 1 : 0)
            << unit.name << " " << threshold << " " << i;
    }
}

// The error of the logarithm is below 4 units of 2^-53, which the root halves; the series of the sine
// adds 2.5 relative to 1, root and product half a unit each: 8 is safe.
TEST(RandomDraws, NormalsFollowTheFormula) {
  const auto [radius, angle] = pairs();
  for (const DrawUnit& unit : draw_units()) {
    std::vector<double> found(radius.size());
    unit.normals(radius.data(), angle.data(), found.data(), found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const auto u = static_cast<long double>(radius[i] >> 11) * 0x1p-53L;
      const auto v = static_cast<long double>(angle[i] >> 11) * 0x1p-53L;
      const long double scale = std::sqrt(-2 * std::log1p(-u));
      const long double exact = scale * std::cos(2 * std::numbers::pi_v<long double> * v);
      ASSERT_NEAR(found[i], static_cast<double>(exact), static_cast<double>(8 * 0x1p-53L * scale))
          << unit.name << " u " << static_cast<double>(u) << " v " << static_cast<double>(v);
    }
  }
}

TEST(RandomDraws, EveryVectorUnitGivesTheSameBits) {
  const auto [radius, angle] = pairs();
  std::vector<double> first(radius.size());
  draw_units().back().normals(radius.data(), angle.data(), first.data(), first.size());
  for (const DrawUnit& unit : draw_units()) {
    std::vector<double> found(radius.size());
    unit.normals(radius.data(), angle.data(), found.data(), found.size());
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint64_t>(found[i]), std::bit_cast<uint64_t>(first[i])) << unit.name;
    std::vector<float> floats(first.size());
    unit.floats(first.data(), 0.02, 0.25, floats.data(), floats.size());
    for (size_t i = 0; i < floats.size(); ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(floats[i]),
                std::bit_cast<uint32_t>(static_cast<float>(first[i] * 0.02 + 0.25)))
          << unit.name;
  }
}

// Whole blocks and what is left of one, and not a float beyond.
TEST(RandomDraws, FloatsAreTheRoundedNormals) {
  for (const size_t count : {0, 1, 7, 127, 128, 129, 300}) {
    std::vector<double> values(count);
    PhiloxStream(3, 4).normals(values);
    std::vector<float> found(count + 1, 77.0F);
    PhiloxStream draws(3, 4);
    draws.normals({found.data(), count}, 0.25, 0.02);
    EXPECT_EQ(found[count], 77.0F);
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(std::bit_cast<uint32_t>(found[i]),
                std::bit_cast<uint32_t>(static_cast<float>(0.25 + 0.02 * values[i])))
          << count << " " << i;
    PhiloxStream next(3, 4);
    next.skip(2 * count);
    EXPECT_EQ(draws.bits(), next.bits());
  }
}

// On every processor and by every compiler: initial values are recorded by seed alone.
TEST(RandomDraws, NormalsAreTheRecordedOnes) {
  std::vector<double> values(4096);
  PhiloxStream(1234, hash_text("layers.0.weight")).normals(values);
  EXPECT_EQ(values[0], 0x1.0a9df62ab270bp+0);
  EXPECT_EQ(values[4095], 0x1.78a5f36c7b071p-6);
  EXPECT_EQ(hash_hex(hash_bytes(values.data(), values.size() * sizeof(double))),
            "3df03c6876f82574");
}

TEST(RandomDraws, ManyAtOnceAreSingleOnesInTurn) {
  for (const size_t count : {0, 1, 7, 8, 127, 128, 129, 1000}) {
    PhiloxStream many(5, 6);
    PhiloxStream single(5, 6);
    many.skip(3);
    for (int i = 0; i < 3; ++i) single.bits();
    std::vector<double> values(count);
    many.normals(values);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], single.normal()) << count;
    many.uniforms(values);
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], single.uniform()) << count;
    EXPECT_EQ(many.bits(), single.bits());
  }
}

// Within five standard errors of the share that lies beyond; the seed is fixed.
TEST(RandomDraws, TailsAreThoseOfTheNormalDistribution) {
  constexpr size_t kCount = 1 << 21;
  std::vector<double> values(kCount);
  PhiloxStream(7).normals(values);
  for (const double limit : {0.5, 1.0, 2.0, 3.0, 4.0, 4.5}) {
    const double share = std::erfc(limit / std::numbers::sqrt2) / 2;
    const double error = std::sqrt(share * (1 - share) / kCount);
    const auto above = std::ranges::count_if(values, [&](double x) { return x > limit; });
    const auto below = std::ranges::count_if(values, [&](double x) { return x < -limit; });
    EXPECT_NEAR(static_cast<double>(above) / kCount, share, 5 * error) << limit;
    EXPECT_NEAR(static_cast<double>(below) / kCount, share, 5 * error) << limit;
  }
}

}  // namespace
}  // namespace fullbore
