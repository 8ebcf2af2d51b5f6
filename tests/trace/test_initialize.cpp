#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/trace/trace.h"

namespace fullbore {
namespace {

constexpr int64_t kCount = 100000;

std::vector<float> filled(const Initializer& initializer, uint64_t seed, const std::string& name,
                          int64_t count = kCount) {
  std::vector<float> values(static_cast<size_t>(count), -99);
  initialize(initializer, {DType::f32, {count}}, seed, name, values.data());
  return values;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double kurtosis = 0;  // fourth central moment / deviation^4: normal 3, uniform 1.8
};

Moments moments(const std::vector<float>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double second = 0;
  double fourth = 0;
  for (float value : values) {
    const double square = (value - mean) * (value - mean);
    second += square / n;
    fourth += square * square / n;
  }
  return {mean, std::sqrt(second), fourth / (second * second)};
}

double correlation(const std::vector<float>& a, const std::vector<float>& b) {
  const Moments of_a = moments(a);
  const Moments of_b = moments(b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - of_a.mean) * (b[i] - of_b.mean);
  return sum / (static_cast<double>(a.size()) * of_a.deviation * of_b.deviation);
}

// Tolerances are five standard errors of the statistic over kCount draws; the seed is fixed.
TEST(Initialize, NormalHasItsMoments) {
  const Moments found = moments(filled(Initializer::normal(0.5, 2), 1, "w"));
  EXPECT_NEAR(found.mean, 2, 5 * 0.5 / std::sqrt(kCount));
  EXPECT_NEAR(found.deviation, 0.5, 5 * 0.5 / std::sqrt(2.0 * kCount));
  EXPECT_NEAR(found.kurtosis, 3, 5 * std::sqrt(24.0 / kCount));
}

TEST(Initialize, UniformHasItsMomentsAndStaysInside) {
  const std::vector<float> values = filled(Initializer::uniform(-1, 3), 1, "w");
  const Moments found = moments(values);
  EXPECT_NEAR(found.mean, 1, 5 * 4 / std::sqrt(12.0 * kCount));
  EXPECT_NEAR(found.deviation, 4 / std::sqrt(12.0), 0.02);
  EXPECT_NEAR(found.kurtosis, 1.8, 0.02);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -1);
  EXPECT_LE(*high, 3);
  EXPECT_LT(*low, -0.999);
  EXPECT_GT(*high, 2.999);
}

TEST(Initialize, ConstantsAndGivenValues) {
  EXPECT_EQ(filled(Initializer::zeros(), 1, "w", 3), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(filled(Initializer::ones(), 1, "w", 3), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(filled(Initializer::given({3, -1, 0.5}), 1, "w", 3), (std::vector<float>{3, -1, 0.5}));
}

TEST(Initialize, FillsTheDtypeItIsGiven) {
  std::vector<int64_t> integers(2, -99);
  initialize(Initializer::given({7, -3}), {DType::i64, {2}}, 1, "n", integers.data());
  EXPECT_EQ(integers, (std::vector<int64_t>{7, -3}));
  std::vector<double> reals(64);
  initialize(Initializer::normal(1), {DType::f64, {64}}, 1, "w", reals.data());
  const std::vector<float> singles = filled(Initializer::normal(1), 1, "w", 64);
  for (size_t i = 0; i < reals.size(); ++i) EXPECT_EQ(static_cast<float>(reals[i]), singles[i]);
  uint16_t halves[2] = {0, 0};
  initialize(Initializer::ones(), {DType::bf16, {2}}, 1, "w", halves);
  EXPECT_EQ(bf16_to_f32(halves[1]), 1);
}

TEST(Initialize, DependsOnSeedAndNameAlone) {
  const Initializer normal = Initializer::normal(1);
  const std::vector<float> values = filled(normal, 1, "layers.0.weight");
  EXPECT_EQ(values, filled(normal, 1, "layers.0.weight"));
  for (const auto& other :
       {filled(normal, 2, "layers.0.weight"), filled(normal, 1, "layers.1.weight")})
    EXPECT_LT(std::abs(correlation(values, other)), 5 / std::sqrt(kCount));
  // Not the same stream shifted: neighbouring draws are independent, too.
  const std::vector<float> shifted(values.begin() + 1, values.end());
  const std::vector<float> head(values.begin(), values.end() - 1);
  EXPECT_LT(std::abs(correlation(head, shifted)), 5 / std::sqrt(kCount));
}

// The first values of a longer tensor are those of a shorter one: growing a vocabulary keeps rows.
TEST(Initialize, PrefixesAgree) {
  const std::vector<float> longer = filled(Initializer::normal(1), 1, "w", 100);
  const std::vector<float> shorter = filled(Initializer::normal(1), 1, "w", 60);
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
}

// Nor does it matter who fills which part.
TEST(Initialize, AnyNumberOfPartsGivesTheSameBytes) {
  const Initializer kinds[] = {Initializer::zeros(), Initializer::ones(),
                               Initializer::normal(0.02, 1), Initializer::uniform(-1, 3),
                               Initializer::given(std::vector<double>(10007, 0.3))};
  for (const Initializer& kind : kinds)
    for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
      const TensorType type{dtype, {10007}};
      std::vector<char> alone(static_cast<size_t>(type.bytes()), '\x11');
      initialize(kind, type, 1, "w", alone.data());
      const int64_t width = type.bytes() / type.elements();
      for (const int64_t parts : {1, 2, 3, 7}) {
        std::vector<char> together(alone.size(), '\x22');
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t begin = type.elements() * part / parts;
          initialize_part(kind, type, 1, "w", begin, type.elements() * (part + 1) / parts,
                          together.data() + begin * width);
        }
        EXPECT_EQ(together, alone) << parts << " " << dtype_name(dtype);
      }
    }
}

TEST(Initialize, NormalsOfBf16AreThoseOfF32Rounded) {
  const Initializer kind = Initializer::normal(0.02, 1);
  const std::vector<float> wide = filled(kind, 1, "w", 1037);
  std::vector<uint16_t> narrow(wide.size());
  initialize(kind, {DType::bf16, {1037}}, 1, "w", narrow.data());
  for (size_t i = 0; i < wide.size(); ++i) ASSERT_EQ(narrow[i], f32_to_bf16(wide[i])) << i;
}

TEST(Initialize, EmptyTensorsAreLeftAlone) {
  float nothing = 7;
  initialize(Initializer::normal(1), {DType::f32, {0, 3}}, 1, "w", &nothing);
  EXPECT_EQ(nothing, 7);
}

TEST(InitializeDeathTest, GivenValuesMustFit) {
  float values[3];
  EXPECT_DEATH(initialize(Initializer::given({1, 2}), {DType::f32, {3}}, 1, "w", values),
               "2 initial values for 'w' of f32\\[3\\]");
}

// Products of rows, or of columns where there are fewer, are those of an orthogonal matrix times the gain squared.
TEST(Initialize, OrthogonalMatricesAre) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(24, 24), {8, 40}, {40, 8}}) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    initialize(Initializer::orthogonal(0.5), {DType::f32, {rows, columns}}, 3, "w", values.data());
    const int64_t lesser = std::min(rows, columns), other = std::max(rows, columns);
    for (int64_t i = 0; i < lesser; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t k = 0; k < other; ++k) {
          const auto at = [&](int64_t which) {
            return values[static_cast<size_t>(rows <= columns ? which * columns + k
                                                              : k * columns + which)];
          };
          product += static_cast<double>(at(i)) * at(j);
        }
        EXPECT_NEAR(product, i == j ? 0.25 : 0, 1e-7) << i << " " << j;
      }
  }
}

TEST(Initialize, OrthogonalMatricesDifferByName) {
  const auto made = [](const char* name) {
    std::vector<float> values(32 * 32);
    initialize(Initializer::orthogonal(1), {DType::f32, {32, 32}}, 3, name, values.data());
    return values;
  };
  EXPECT_EQ(made("a"), made("a"));
  EXPECT_LT(std::abs(correlation(made("a"), made("b"))), 5 / 32.0);
}

TEST(Initialize, AFunctionMayFollow) {
  Initializer decibels = Initializer::uniform(0, 10);
  decibels.then = [](double value) { return std::pow(10, value / 10); };
  for (const float value : filled(decibels, 1, "w", 1000)) {
    EXPECT_GE(value, 1);
    EXPECT_LE(value, 10);
  }
}

}  // namespace
}  // namespace fullbore
