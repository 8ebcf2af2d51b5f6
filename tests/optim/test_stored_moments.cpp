// Moments in bf16 and in blocks of bytes, weights in bf16: what is stored, what it stands for, and what comes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/philox.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/optim/rounding.h"
#include "fullbore/optim/stored_moment.h"
#include "tests/optim/replayed.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using testing::ElementsAre;

const Shape kTable = {40, 120};  // 20 blocks of 240
constexpr int64_t kElements = 4800;
const std::map<std::string, Shape> kShapes = {{"table", kTable}, {"vector", {5}}};

Graph step_of(const OptimizerOptions& options, bool model_draws = false) {
  Trace trace("step", true);
  Tensor loss = loss_of_given_gradients(trace, kShapes);
  if (model_draws)
    loss = loss + reduce_sum(random_uniform(trace.random(), {DType::f32, {3}}), {0}) * 0.0;
  trace.result("skipped", optimize(trace, loss, options).skipped);
  return trace.finish();
}

OptimizerOptions options_of(const std::string& name, const std::string& moments) {
  return {.name = name,
          .schedule = {"constant", 0.01, 0, 0, 1},
          .weight_decay = 0.1,
          .clip_norm = 0,
          .storage = {.moments = moments}};
}

// Of widely different sizes, from row to row and from block to block.
std::vector<double> gradient(uint64_t step) {
  PhiloxStream draws(7, step);
  std::vector<double> values;
  for (int64_t i = 0; i < kElements; ++i)
    values.push_back(static_cast<float>(std::exp(static_cast<double>(i % 7) - 6) * draws.normal()));
  return values;
}

Literals batch(uint64_t step, double last = 1) {
  return {{"gradient.table", Literal::of({DType::f32, kTable}, gradient(step))},
          {"gradient.vector", Literal::of({DType::f32, {5}}, {1, 2, 3, 4, last})}};
}

Literals start() {
  std::vector<double> table;
  for (int64_t i = 0; i < kElements; ++i)
    table.push_back(bf16_to_f32(f32_to_bf16(std::sin(static_cast<float>(i)))));
  return {{"table", Literal::of({DType::f32, kTable}, table)},
          {"vector", Literal::of({DType::f32, {5}}, {1, 2, 3, 4, 5})}};
}

std::vector<std::string> moments_of(const Graph& graph) {
  std::vector<std::string> found;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::moment)
      found.push_back(input.name + " " + graph.type(input.value).text());
  return found;
}

double distance(const Literal& a, const Literal& b) {
  double squares = 0;
  for (int64_t i = 0; i < a.elements(); ++i) squares += std::pow(a.at(i) - b.at(i), 2);
  return std::sqrt(squares / static_cast<double>(a.elements()));
}

// --- what is stored ------------------------------------------------------------------------------
TEST(StoredMoments, ComeInBlocksThatDivideTheTensor) {
  EXPECT_EQ(moment_block(4095), 0) << "small";
  EXPECT_EQ(moment_block(4096), 256);
  EXPECT_EQ(moment_block(384 * 65), 240);
  EXPECT_EQ(moment_block(int64_t{50257} * 768), 256);
  EXPECT_EQ(moment_block(4099 * 16), 0) << "by 16 alone";
}

TEST(StoredMoments, AreOfTheTypesThatTheStorageSays) {
  EXPECT_THAT(moments_of(step_of(options_of("adamw", "int8"))),
              ElementsAre("table.moment1 i8[40,120]", "table.moment1.scale f32[20]",
                          "table.moment2 u8[40,120]", "table.moment2.scale f32[20]",
                          "vector.moment1 f32[5]", "vector.moment2 f32[5]"));
  EXPECT_THAT(moments_of(step_of(options_of("lion", "bf16"))),
              ElementsAre("table.moment1 bf16[40,120]", "vector.moment1 f32[5]"));
  EXPECT_EQ(usage_error([] { step_of(options_of("adamw", "int4")); }),
            "unknown storage of moments 'int4'. Did you mean 'int8'? There are f32, bf16, int8.");
}

// Bytes decoded here, by the formulas of stored_moment.h, follow moments in double within half a step per update.
TEST(StoredMoments, BytesStandForPowersOfTheirBlocksLargest) {
  const std::unique_ptr<Replayed> run = compiled(step_of(options_of("adamw", "int8")), start());
  const Literals out = run->step(batch(0));
  const std::vector<double> g = gradient(0);
  for (int64_t block = 0; block < kElements / 240; ++block) {
    double largest = 0;
    for (int64_t i = 240 * block; i < 240 * (block + 1); ++i)
      largest = std::max(largest, std::abs(g[static_cast<size_t>(i)]));
    const double first = out.at("table.moment1.scale").at(block);
    const double second = out.at("table.moment2.scale").at(block);
    ASSERT_NEAR(first, 0.1 * largest, 1e-6 * largest);
    ASSERT_NEAR(second, 0.001 * largest * largest, 1e-6 * largest * largest);
    for (int64_t i = 240 * block; i < 240 * (block + 1); ++i) {
      const double value = g[static_cast<size_t>(i)] / largest;
      const double signed_root = out.at("table.moment1").at(i);
      const double fourth_root = out.at("table.moment2").at(i);
      ASSERT_NEAR(signed_root, std::copysign(127 * std::sqrt(std::abs(value)), value), 0.5001);
      // 0 is of zeros only.
      ASSERT_NEAR(fourth_root, std::max(1.0, 255 * std::sqrt(std::abs(value))), 0.5001);
    }
  }
}

TEST(StoredMoments, OfAZeroGradientAreZero) {
  const std::unique_ptr<Replayed> run = compiled(step_of(options_of("adamw", "int8")), start());
  Literals zeros = batch(0);
  zeros["gradient.table"] =
      Literal::of({DType::f32, kTable}, std::vector<double>(static_cast<size_t>(kElements), 0));
  const Literals out = run->step(zeros);
  for (const char* name : {"table.moment1", "table.moment2"})
    for (int64_t i = 0; i < kElements; ++i) ASSERT_EQ(out.at(name).at(i), 0) << name;
  EXPECT_EQ(out.at("table.moment2.scale").at(3), 0);
  // (1 - rate decay) p, and no 0 / 0
  EXPECT_NEAR(out.at("table").at(1), 0.999 * start().at("table").at(1), 1e-7);
}

// --- what comes of it ----------------------------------------------------------------------------
struct Case {
  std::string optimizer, moments;
  double bound;  ///< of the weights' distance to those by f32 moments, in relation to their way
};

class EveryOptimizer : public testing::TestWithParam<Case> {};

TEST_P(EveryOptimizer, LeadWhereMomentsInF32Lead) {
  const auto& [name, moments, bound] = GetParam();
  const auto after = [&, name = name](const std::string& storage) {
    const std::unique_ptr<Replayed> run = compiled(step_of(options_of(name, storage)), start());
    Literals out;
    for (uint64_t step = 0; step < 6; ++step) out = run->step(batch(step));
    return out;
  };
  const Literals exact = after("f32"), stored = after(moments);
  const double way = distance(exact.at("table"), start().at("table"));
  EXPECT_LT(distance(exact.at("table"), stored.at("table")), bound * way);
  EXPECT_EQ(elements(exact.at("vector")), elements(stored.at("vector"))) << "small ones are f32";
}

// A step that is skipped leaves every bit; the one after it is what it would have been.
TEST_P(EveryOptimizer, SkippedStepsLeaveThem) {
  const auto& [name, moments, bound] = GetParam();
  const Graph graph = step_of(options_of(name, moments));
  const std::unique_ptr<Replayed> run = compiled(graph, start());
  const Literals before = run->step(batch(0));
  const Literals skipped = run->step(batch(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(skipped.at("skipped").at(0), 1);
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::moment && input.role != Role::parameter) continue;
    EXPECT_EQ(before.at(input.name).bytes(), skipped.at(input.name).bytes()) << input.name;
  }
  EXPECT_EQ(run->step(batch(1)).at("skipped").at(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryOptimizer,
                         testing::Values(Case{"adamw", "bf16", 0.01}, Case{"adamw", "int8", 0.08},
                                         Case{"sgd", "bf16", 0.01}, Case{"sgd", "int8", 0.04},
                                         Case{"lion", "bf16", 0.2}, Case{"lion", "int8", 0.2},
                                         Case{"muon", "bf16", 0.01}, Case{"muon", "int8", 0.05}),
                         [](const auto& parameter) {
                           return parameter.param.optimizer + "_" + parameter.param.moments;
                         });

// --- rounding ------------------------------------------------------------------------------------
// Each of x's elements, rounded by as many draws.
std::vector<std::vector<double>> rounded(const std::vector<double>& x, int64_t draws) {
  const auto count = static_cast<int64_t>(x.size());
  const std::unique_ptr<Replayed> run = compiled(
      [&] {
        Trace trace("round", false);
        const Tensor given =
            broadcast_to(trace.batch("x", {DType::f32, {count, 1}}), {count, draws});
        const Tensor uniform = random_uniform(trace.random(), {DType::f32, {count, draws}});
        const Tensor kept = trace.state("kept", Role::recurrent, {DType::f32, {count, draws}},
                                        Initializer::zeros());
        trace.update(kept, round_stochastically_to_bf16(given, uniform));
        return trace.finish();
      }(),
      {});
  const Literal all = run->step({{"x", Literal::of({DType::f32, {count, 1}}, x)}}).at("kept");
  std::vector<std::vector<double>> result;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t draw = 0; draw < draws; ++draw)
      (draw == 0 ? result.emplace_back() : result.back()).push_back(all.at(i * draws + draw));
  return result;
}

TEST(StochasticRounding, IsRightOnAverageAndTakesNeighboursAlone) {
  // Within a binade, at both of its ends, a little below a power of two, of both signs.
  const std::vector<double> values = {1.0 + 0x1p-12, 1.9990234375, 1.99609375 + 0x1p-11,
                                      2 - 0x1p-10,   -0.3331,      -2 + 0x1p-11,
                                      1.0 - 0x1p-12, 3.0e-20,      -7.7e25};
  constexpr int64_t kDraws = 1 << 16;
  const std::vector<std::vector<double>> found = rounded(values, kDraws);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(static_cast<float>(values[i]));
    const auto [low, high] = std::ranges::minmax(found[i]);
    EXPECT_LE(low, x);
    EXPECT_GE(high, x);
    double mean = 0;
    for (const double each : found[i]) {
      EXPECT_TRUE(each == low || each == high) << x;
      mean += each / static_cast<double>(kDraws);
    }
    EXPECT_LE(high - low, std::abs(x) * 0x1p-7);
    // Six standard deviations of the mean of as many draws, at their largest.
    EXPECT_NEAR(mean, x, 6 * 0.5 * (high - low) / std::sqrt(static_cast<double>(kDraws))) << x;
  }
}

TEST(StochasticRounding, LeavesWhatBf16HoldsAndWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0, -0.0, 1, -2.5, 0x1p-126, infinity, -infinity};
  const std::vector<std::vector<double>> found = rounded(values, 100);
  for (size_t i = 0; i < values.size(); ++i)
    for (const double each : found[i]) ASSERT_EQ(each, values[i]);
  EXPECT_TRUE(std::isnan(rounded({std::nan("")}, 1)[0][0]));
}

OptimizerOptions small_steps(bool stochastic) {
  return {.name = "sgd",
          .schedule = {"constant", 1e-4, 0, 0, 1},
          .momentum = 0,
          .weight_decay = 0,
          .clip_norm = 0,
          .storage = {.master_weights = false, .stochastic = stochastic}};
}

// Weights of 1, a gradient of 1: 50 updates by 1e-4 each, where the next bf16 value is 0.0039 away.
double mean_after_50_small_steps(bool stochastic, bool model_draws = false,
                                 std::vector<double>* all = nullptr) {
  Literals ones = start(), gradients = batch(0);
  ones["table"] = gradients["gradient.table"] =
      Literal::of({DType::f32, kTable}, std::vector<double>(static_cast<size_t>(kElements), 1));
  const std::unique_ptr<Replayed> run =
      compiled(step_of(small_steps(stochastic), model_draws), ones);
  Literals out;
  for (int step = 0; step < 50; ++step) out = run->step(gradients);
  const std::vector<double> values = elements(out.at("table"));
  for (const double each : values)
    EXPECT_EQ(each, bf16_to_f32(f32_to_bf16(static_cast<float>(each))));
  EXPECT_NEAR(out.at("vector").at(0), 1 - 50 * 1e-4, 1e-6) << "vectors are kept in f32";
  if (all) *all = values;
  double sum = 0;
  for (const double each : values) sum += each;
  return sum / static_cast<double>(kElements);
}

TEST(StochasticRounding, MovesWeightsThatNearestNeverMoves) {
  EXPECT_EQ(mean_after_50_small_steps(false), 1);
  // A step of 1/256 is taken with probability 256e-4: the variance of 50 of them, by weight, is 50 * 1e-4 / 256.
  EXPECT_NEAR(mean_after_50_small_steps(true), 1 - 50 * 1e-4,
              6 * std::sqrt(50 * 1e-4 / 256 / kElements));
}

TEST(StochasticRounding, DrawsDoNotDependOnTheModels) {
  std::vector<double> alone, beside;
  mean_after_50_small_steps(true, false, &alone);
  mean_after_50_small_steps(true, true, &beside);
  EXPECT_EQ(alone, beside);
  EXPECT_NE(std::ranges::count(alone, alone[0]), kElements);
}

}  // namespace
}  // namespace fullbore
