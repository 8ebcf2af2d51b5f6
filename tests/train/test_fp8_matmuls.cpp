// Training steps whose matmuls of weights are of 8-bit floats: which they are, by what scales, and what the State knows.
// The processor runs them decomposed.
#include "fullbore/train/fp8_matmuls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/aligned_copy.h"
#include "fullbore/ir/fp32_scope.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/fp8.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/runtime/program.h"
#include "tests/support/evaluate.h"
#include "tests/support/small_transformer.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing_support::cpu_device;
using testing_support::small_transformer;
using testing_support::TokenChains;

constexpr int64_t kSide = 4;
constexpr size_t kHistory = static_cast<size_t>(kFp8History);

OptimizerOptions in_8_bits(std::vector<std::string> excluded = {}) {
  OptimizerOptions options;
  options.fp8_matmuls = true;
  options.fp8_excluded = std::move(excluded);
  return options;
}

int count_products(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes())
    count += (node.op == op::fp8_matmul) + (node.body ? count_products(*node.body) : 0);
  return count;
}

std::vector<std::string> layers_of(const LossFunction& loss, const std::vector<BatchField>& fields,
                                   std::vector<std::string> excluded = {}) {
  return trace_training_step(loss, fields, in_8_bits(std::move(excluded))).fp8_layers;
}

TEST(Fp8Matmuls, AreThoseOfWeightsBetweenEmbeddingAndHead) {
  const std::vector<BatchField> fields = TokenChains().fields();
  const TracedStep step = trace_training_step(small_transformer, fields, in_8_bits());
  EXPECT_THAT(step.fp8_layers,
              ElementsAre("layers.0.query.weight", "layers.0.key.weight", "layers.0.value.weight",
                          "layers.0.output.weight", "layers.0.up.weight", "layers.0.down.weight",
                          "layers.1.query.weight", "layers.1.key.weight", "layers.1.value.weight",
                          "layers.1.output.weight", "layers.1.up.weight", "layers.1.down.weight"));
  EXPECT_EQ(count_products(step.graph), 3 * 12) << "forward, and both gradients";
  for (const Microbatches& parts :
       {Microbatches{.accumulate = 2, .parallel = 1}, Microbatches{.accumulate = 1, .parallel = 2},
        Microbatches{.accumulate = 2, .parallel = 2}}) {
    const TracedStep cut = trace_training_step(small_transformer, fields, in_8_bits(), parts);
    EXPECT_EQ(cut.fp8_layers, step.fp8_layers);
    EXPECT_EQ(count_products(cut.graph), 3 * 12);
  }
  EXPECT_EQ(count_products(trace_training_step(small_transformer, fields, {}).graph), 0);
  EXPECT_EQ(count_products(with_fp8_evaluation(trace_evaluation(small_transformer, fields).graph,
                                               step.fp8_layers)),
            12);
}

TEST(Fp8Matmuls, AreNotOfModulesThatStayAsTheyAre) {
  const std::vector<BatchField> fields = TokenChains().fields();
  EXPECT_THAT(layers_of(small_transformer, fields, {"layers.0.*", "*.query", "*.key", "*.value"}),
              ElementsAre("layers.1.output.weight", "layers.1.up.weight", "layers.1.down.weight"));
  const auto island = [](Trace& trace, std::span<const Tensor> batch) {
    const Fp32Scope scope(trace.builder());
    return small_transformer(trace, batch);
  };
  EXPECT_THAT(layers_of(island, fields), IsEmpty());
}

const std::vector<BatchField> kRowsOfNumbers = {{"x", {DType::f32, {kRows, kSide}}}};

/// x through three weights, of which the second is between the others; by a factor of 1 that is trained, so that the
/// second one's x depends on a parameter.
Loss three_weights(Trace& trace, std::span<const Tensor> batch) {
  const Tensor first = trace.parameter("first", {kSide}, Initializer::ones());
  const Tensor middle = trace.parameter("middle", {kSide, kSide}, Initializer::normal(0.5));
  const Tensor last = trace.parameter("last", {1, kSide}, Initializer::normal(0.5));
  return reduce_mean(linear(linear(batch[0] * first, middle), last), {0, 1});
}

TEST(Fp8Matmuls, AreNeitherOfTheFirstNorOfTheLast) {
  EXPECT_THAT(layers_of(three_weights, kRowsOfNumbers), ElementsAre("middle"));
  const auto of_data = [](Trace& trace, std::span<const Tensor> batch) {
    Tensor x = batch[0];
    for (const char* const name : {"a", "b", "c", "d"})
      x = tanh(linear(x, trace.parameter(name, {kSide, kSide}, Initializer::normal(0.5))));
    return Loss(reduce_mean(x * x, {0, 1}));
  };
  EXPECT_THAT(layers_of(of_data, kRowsOfNumbers), ElementsAre("b", "c"));
  const auto shared = [](Trace& trace, std::span<const Tensor> batch) {
    const Tensor weight = trace.parameter("w", {kSide, kSide}, Initializer::normal(0.5));
    Tensor x = batch[0];
    for (int i = 0; i < 4; ++i) x = tanh(linear(x, weight));
    return Loss(reduce_mean(x * x, {0, 1}));
  };
  EXPECT_THAT(layers_of(shared, kRowsOfNumbers), ElementsAre("w#1", "w#2"));
}

/// A program of three_weights() with State of its own.
class Descent {
 public:
  explicit Descent(const OptimizerOptions& options, const Microbatches& parts = {},
                   const LossFunction& loss = three_weights)
      : step_(trace_training_step(loss, kRowsOfNumbers, options, parts)),
        state_(initial_state(step_, 7, cpu_device(2))),
        program_(Program::compile(step_.graph, state_)) {}

  double step(const std::vector<float>& x) {
    const TensorMemory batch = aligned_copy(x);
    const void* const pointers[] = {batch.get()};
    program_.run(pointers);
    return program_.scalar("loss");
  }
  double skipped() const { return program_.scalar("skipped"); }
  State& state() { return state_; }
  /// What is remembered of an operand, newest first.
  std::vector<float> history(int operand) const {
    const std::vector<float> all = state_.read<float>(kFp8Amax);
    const auto begin = all.begin() + operand * kFp8History;
    return {begin, begin + kFp8History};
  }
  float largest_weight() const {
    float largest = 0;
    for (const float w : state_.read<float>("middle")) largest = std::max(largest, std::fabs(w));
    return largest;
  }

 private:
  TracedStep step_;
  State state_;
  Program program_;
};

std::vector<float> rows_of(double largest, uint64_t stream) {
  PhiloxStream draws(19, stream);
  std::vector<float> x(static_cast<size_t>(kRows * kSide));
  for (float& each : x) each = static_cast<float>(draws.uniform(-largest / 2, largest / 2));
  x[5] = static_cast<float>(-largest);
  return x;
}

OptimizerOptions plain_descent(bool fp8) {
  OptimizerOptions options = in_8_bits();
  options.fp8_matmuls = fp8;
  options.name = "sgd";
  options.schedule = {"constant", 0.05, 0, 0, 1};
  options.momentum = 0;
  options.weight_decay = 0;
  options.clip_norm = 0;
  return options;
}

TEST(Fp8Matmuls, RememberTheLargestNewestFirst) {
  Descent run(plain_descent(true));
  // `first` moves from 1 with the steps: set back, for what x is to be known.
  std::vector<float> of_x, of_w;
  for (int i = 0; i < 18; ++i) {
    run.state().write("first", std::vector<float>(static_cast<size_t>(kSide), 1));
    of_w.insert(of_w.begin(), run.largest_weight());
    of_x.insert(of_x.begin(), static_cast<float>(1 + i % 5));
    run.step(rows_of(1 + i % 5, static_cast<uint64_t>(i)));
    std::vector<float> x = of_x, w = of_w;
    x.resize(kHistory), w.resize(kHistory);  // the oldest go, and what is not known is 0
    EXPECT_EQ(run.history(0), x) << i;
    EXPECT_EQ(run.history(1), w) << i;
    EXPECT_GT(run.history(2)[0], 0) << i;
  }
}

/// The loss by its definition, with the scales that follow from these largest magnitudes.
double expected_loss(Descent& run, const std::vector<float>& x, double of_x, double of_w) {
  const std::vector<float> middle = run.state().read<float>("middle");
  const std::vector<float> last = run.state().read<float>("last");
  const double scale_x = static_cast<float>(448 / of_x), scale_w = static_cast<float>(448 / of_w);
  double sum = 0;
  for (size_t row = 0; row < static_cast<size_t>(kRows); ++row)
    for (size_t out = 0; out < static_cast<size_t>(kSide); ++out) {
      double y = 0;
      for (size_t i = 0; i < static_cast<size_t>(kSide); ++i)
        y += fp8_quantized(x[row * kSide + i], scale_x, Fp8Format::e4m3) *
             fp8_quantized(middle[out * kSide + i], scale_w, Fp8Format::e4m3);
      sum += y / (scale_x * scale_w) * static_cast<double>(last[out]);
    }
  return sum / static_cast<double>(kRows);
}

TEST(Fp8Matmuls, AreScaledByWhatIsRemembered) {
  const std::vector<float> x = rows_of(3, 1);
  const auto near = [](double expected) { return ::testing::DoubleNear(expected, 1e-5); };
  {
    Descent run(plain_descent(true));
    const double expected = expected_loss(run, x, 3, run.largest_weight());
    EXPECT_THAT(run.step(x), near(expected)) << "nothing is known: by what there is";
  }
  for (const auto& [of_x, of_w] : {std::pair{3.0, 0.7}, {0.4, 0.7}, {50.0, 0.05}}) {
    Descent run(plain_descent(true));
    std::vector<float> history(3 * kHistory, 0.01F);
    history[9] = static_cast<float>(of_x);  // the largest counts, wherever it stands
    history[kHistory + 15] = static_cast<float>(of_w);
    run.state().write(kFp8Amax, history);
    const double expected = expected_loss(run, x, history[9], history[kHistory + 15]);
    EXPECT_THAT(run.step(x), near(expected)) << of_x << " and " << of_w;
  }
}

// Operands that e4m3 has exactly, and a cotangent of a range that e5m2 alone has, whatever lies transposed.
TEST(Fp8Matmuls, OfExactNumbersAreThoseOfF32) {
  const auto columns_first = [](Trace& trace, std::span<const Tensor> batch) {
    const Tensor first = trace.parameter("first", {kSide}, Initializer::ones());
    const Tensor middle = trace.parameter("middle", {kSide, kSide}, Initializer::normal(0.5));
    const Tensor last = trace.parameter("last", {1, kSide}, Initializer::normal(0.5));
    return Loss(reduce_mean(linear(matmul(batch[0] * first, middle), last), {0, 1}));
  };
  std::vector<float> x(static_cast<size_t>(kRows * kSide));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::vector<float>{1, -2, 4, 0.5F, -1}[i % 5];
  for (const LossFunction& loss : {LossFunction(three_weights), LossFunction(columns_first)}) {
    Descent exact(plain_descent(false), {}, loss), run(plain_descent(true), {}, loss);
    for (Descent* each : {&exact, &run}) {
      std::vector<float> middle(static_cast<size_t>(kSide * kSide));
      for (size_t i = 0; i < middle.size(); ++i)
        // 0 where the least cotangents go: a gradient of 2^-25 is to be seen.
        middle[i] = i % kSide == 1 || i / kSide == 1
                        ? 0
                        : std::vector<float>{2, -1, 0.25F, 0.5F, -4}[i % 5];
      each->state().write("middle", middle);
      each->state().write("last", std::vector<float>{1, -0x1p-22F, 0.5F, 4});
    }
    EXPECT_NEAR(run.step(x), exact.step(x), 1e-5);
    for (const char* const name : {"first", "middle", "last"}) {
      const std::vector<float> expected = exact.state().read<float>(name);
      const std::vector<float> found = run.state().read<float>(name);
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(found[i], expected[i], 1e-4F * std::fabs(expected[i])) << name << " " << i;
    }
  }
}

// Whichever of them has it.
TEST(Fp8Matmuls, OfMicrobatchesRememberTheLargestOfAll) {
  const std::vector<float> early = rows_of(3, 2);
  const std::vector<float> late(early.rbegin(), early.rend());
  for (const Microbatches& parts :
       {Microbatches{.accumulate = 2, .parallel = 1}, Microbatches{.accumulate = 1, .parallel = 4},
        Microbatches{.accumulate = 2, .parallel = 2}}) {
    Descent cut(plain_descent(true), parts);
    for (const std::vector<float>* const x : {&early, &late}) {
      cut.state().write("first", std::vector<float>(static_cast<size_t>(kSide), 1));
      const float of_w = cut.largest_weight();
      cut.step(*x);
      EXPECT_EQ(cut.history(0)[0], 3) << parts.accumulate << " by " << parts.parallel;
      EXPECT_EQ(cut.history(1)[0], of_w);
      EXPECT_GT(cut.history(2)[0], 0);
    }
    EXPECT_EQ(cut.history(0)[1], 3);
    EXPECT_EQ(cut.history(0)[2], 0);
  }
}

TEST(Fp8Matmuls, RememberNothingOfASkippedStep) {
  Descent run(plain_descent(true));
  run.step(rows_of(2, 1));
  const std::vector<float> before = run.state().read<float>(kFp8Amax);
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x = rows_of(2, 3);
    x[3] = bad;
    run.step(x);
    EXPECT_EQ(run.skipped(), 1) << "8 bits have hidden " << bad;
    EXPECT_EQ(run.state().read<float>(kFp8Amax), before);
  }
  run.step(rows_of(1, 4));
  EXPECT_EQ(run.skipped(), 0);
  EXPECT_EQ(run.history(0)[1], before[0]);
}

TEST(Fp8Matmuls, OfEvaluationsReadTheStateAlone) {
  Descent run(plain_descent(true));
  std::vector<float> history(3 * kHistory, 0);
  history[2] = 0.4F, history[kHistory] = 0.7F;
  run.state().write(kFp8Amax, history);
  const std::vector<std::string> layers = {"middle"};
  const Graph graph =
      with_fp8_evaluation(trace_evaluation(three_weights, kRowsOfNumbers).graph, layers);
  for (const Graph::Output& output : graph.outputs()) EXPECT_LT(output.updates, 0) << output.name;
  Program program = Program::compile(graph, run.state());
  const std::vector<float> x = rows_of(3, 5);
  const TensorMemory batch = aligned_copy(x);
  const void* const pointers[] = {batch.get()};
  program.run(pointers);
  EXPECT_NEAR(program.scalar("loss"), expected_loss(run, x, 0.4F, 0.7F), 1e-5);
  EXPECT_EQ(run.state().read<float>(kFp8Amax), history);
}

}  // namespace
}  // namespace fullbore
