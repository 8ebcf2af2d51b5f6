#include "workloads/energy_flow/flow_draws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fullbore/base/philox.h"
#include "tests/support/evaluate.h"

namespace fullbore::energy_flow {
namespace {

constexpr int64_t kSeed = 1234567890123, kOptimizerStep = 41, kStep = 3;

using Draw = std::function<Tensor(const FlowDraws& draws, const Flows& flows)>;

std::vector<double> drawn(const std::vector<double>& ids, const Draw& draw, int64_t step = kStep,
                          int64_t site = 0, double iteration = -1) {
  const auto scalar = [](double value) { return integers(DType::i64, {}, {value}); };
  std::vector<Literal> inputs = {
      integers(DType::i64, {std::ssize(ids)}, ids), scalar(static_cast<double>(kSeed)),
      scalar(static_cast<double>(kOptimizerStep)), scalar(static_cast<double>(step))};
  if (iteration >= 0) inputs.push_back(scalar(iteration));
  return elements(evaluate(inputs, [&](GraphBuilder&, const std::vector<Tensor>& given) {
    RandomSource source{given[1], given[2], site};
    if (iteration >= 0) source.iteration = given[4];
    Flows flows;
    flows.id = given[0];
    flows.step = given[3];
    return draw(FlowDraws(source, 16), flows);
  }));
}

Tensor normals(const FlowDraws& draws, const Flows& flows) {
  return draws.normals(flows, DType::f64);
}

// Philox4x32-10 with the counter (flow, t, g, 0), as the specification has it.
TEST(FlowDraws, NormalsAreThoseOfTheFlowAndTheStep) {
  const std::vector<double> ids = {0, 7, 4'000'000'000};
  const std::vector<double> found = drawn(ids, normals);
  const auto unit = [](uint64_t bits) { return std::ldexp(static_cast<double>(bits), -24); };
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [lower, upper] = philox_halves(
        kSeed, static_cast<uint64_t>(ids[i]) + (uint64_t{kStep} << 32), kOptimizerStep);
    const auto pair = [&](uint64_t bits, bool sine) {
      const double radius = std::sqrt(-2 * std::log(unit(((bits & 0xFFFFFFFF) >> 8) + 1)));
      const double angle = 2 * std::numbers::pi * unit(bits >> 40);
      return radius * (sine ? std::sin(angle) : std::cos(angle));
    };
    EXPECT_NEAR(found[3 * i], pair(lower, false), 1e-12);
    EXPECT_NEAR(found[3 * i + 1], pair(lower, true), 1e-12);
    EXPECT_NEAR(found[3 * i + 2], pair(upper, false), 1e-12);
  }
}

TEST(FlowDraws, DependOnFlowStepSiteAndMicrobatchAlone) {
  const std::vector<double> one = drawn({5}, normals);
  const std::vector<double> among = drawn({9, 2, 5, 5}, normals);
  for (size_t axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(among[6 + axis], one[axis]);
    EXPECT_EQ(among[9 + axis], one[axis]);
    EXPECT_NE(among[axis], one[axis]);
  }
  EXPECT_NE(drawn({5}, normals, kStep + 1), one);
  EXPECT_NE(drawn({5}, normals, kStep, 1), one);
  EXPECT_EQ(drawn({5}, normals, kStep, 0, 0), one);
  EXPECT_NE(drawn({5}, normals, kStep, 0, 1), one);
  EXPECT_NE(drawn({5}, normals, kStep, 0, 1), drawn({5}, normals, kStep, 0, 2));
}

TEST(FlowDraws, NormalsHaveTheirMoments) {
  std::vector<double> ids(20000);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<double>(i);
  const std::vector<double> found = drawn(ids, normals);
  for (size_t axis = 0; axis < 3; ++axis) {
    double sum = 0, squares = 0, products = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const double x = found[3 * i + axis], y = found[3 * i + (axis + 1) % 3];
      sum += x;
      squares += x * x;
      products += x * y;
    }
    const auto n = static_cast<double>(ids.size());
    EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
    EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
    EXPECT_NEAR(products / n, 0, 5 / std::sqrt(n));
  }
}

TEST(FlowDraws, DropoutKeepsItsShareAndTheMean) {
  constexpr int64_t kFlows = 500, kChannels = 21;
  std::vector<double> ids(kFlows);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<double>(i);
  const Draw draw = [](const FlowDraws& draws, const Flows& flows) {
    return draws.dropout(
        flows, full(flows.id.builder(), {DType::f64, {flows.id.dim(0), kChannels}}, 2), 0.25);
  };
  const std::vector<double> found = drawn(ids, draw);
  ASSERT_EQ(std::ssize(found), kFlows * kChannels);
  int64_t dropped = 0;
  for (const double value : found) {
    EXPECT_TRUE(value == 0 || value == 2 / 0.75) << value;
    dropped += value == 0 ? 1 : 0;
  }
  const double n = kFlows * kChannels;
  EXPECT_NEAR(static_cast<double>(dropped) / n, 0.25, 5 * std::sqrt(0.25 * 0.75 / n));
  // Each channel draws by itself: no two of a flow's masks are the same word.
  for (int64_t channel = 1; channel < kChannels; ++channel) {
    int64_t equal = 0;
    for (int64_t row = 0; row < kFlows; ++row)
      equal += found[static_cast<size_t>(row * kChannels)] ==
                       found[static_cast<size_t>(row * kChannels + channel)]
                   ? 1
                   : 0;
    EXPECT_LT(equal, kFlows * 0.75) << channel;
  }
  const std::vector<double> other = drawn({3}, draw);
  EXPECT_EQ(std::vector<double>(found.begin() + 3 * kChannels, found.begin() + 4 * kChannels),
            other);
}

}  // namespace
}  // namespace fullbore::energy_flow
