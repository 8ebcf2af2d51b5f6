// Training steps against a reference in double precision, written out in this file: unequal counts of predictions in
// microbatches, loss scaling, clipping, schedule, moments, averages and skipped steps together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr size_t kRows = 12, kTokens = 3, kInputs = 4, kHidden = 5;

/// Rows of up to three tokens. A token that is masked out is padding.
struct alignas(64) Batch {
  float x[kRows * kTokens * kInputs];
  alignas(64) float y[kRows * kTokens];
  alignas(64) float mask[kRows * kTokens];
};

// Rows have none to three tokens, and microbatches of them unequally many.
Batch batch_of(uint64_t position) {
  Batch batch = {};
  PhiloxStream draws(17, position);
  for (float& value : batch.x) value = static_cast<float>(draws.normal());
  for (float& value : batch.y) value = static_cast<float>(draws.normal());
  for (size_t row = 0; row < kRows; ++row)
    for (size_t token = 0; token < kTokens; ++token)
      batch.mask[row * kTokens + token] = token < (row + row / 4) % 4 ? 1 : 0;
  return batch;
}

// The mean, over the tokens that count, of (tanh(x A) b - y)^2.
Loss masked_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor a = trace.parameter("a", {kInputs, kHidden}, Initializer::normal(0.5));
  const Tensor b = trace.parameter("b", {kHidden}, Initializer::normal(0.5));
  const int64_t tokens = batch[0].dim(0) * batch[0].dim(1);
  const Tensor hidden = tanh(matmul(reshape(batch[0], {tokens, kInputs}), a));
  const Tensor found = reduce_sum(hidden * broadcast_to(b, hidden.shape()), {1});
  const Tensor error = found - reshape(batch[1], {tokens});
  const Tensor mask = reshape(batch[2], {tokens});
  const Tensor count = reduce_sum(mask, {0});
  return {reduce_sum(error * error * mask, {0}) / maximum(count, 1.0), count};
}

const std::vector<BatchField> kFields = {{"x", {DType::f32, {kRows, kTokens, kInputs}}},
                                         {"y", {DType::f32, {kRows, kTokens}}},
                                         {"mask", {DType::f32, {kRows, kTokens}}}};

constexpr double kRate = 0.05, kLeastRate = 0.01, kDecay = 0.1, kBeta1 = 0.9, kBeta2 = 0.99;
constexpr double kEpsilon = 1e-6, kClip = 0.4, kEmaDecay = 0.9, kFirstScale = 1024;
constexpr int kWarmUp = 2, kTotal = 9, kInterval = 3;

OptimizerOptions options_of(bool scaled) {
  OptimizerOptions options{
      .schedule = {.schedule = "linear",
                   .learning_rate = kRate,
                   .minimum_learning_rate = kLeastRate,
                   .warmup_steps = kWarmUp,
                   .total_steps = kTotal},
      .beta1 = kBeta1,
      .beta2 = kBeta2,
      .epsilon = kEpsilon,
      .weight_decay = kDecay,
      .clip_norm = kClip,
      .ema_decay = kEmaDecay,
  };
  if (scaled)
    options.loss_scaling = {
        .initial = kFirstScale, .growth = 4, .backoff = 0.5, .interval = kInterval};
  return options;
}

/// What a step tells.
struct Told {
  double loss, norm, rate, skipped;
};

/// A training run in double precision.
struct Reference {
  struct Weights {
    std::vector<double> value, first, second, average, gradient;
    double decay = 0;
  };
  Weights a, b;
  double scale = kFirstScale;
  int64_t updates = 0, steps = 0, finite_steps = 0;

  // `is_bad`: some gradient or its norm overflows in the program's numbers, though not in these.
  Told step(const Batch& batch, bool is_bad) {
    const Told told = gradients_of(batch, is_bad);
    ++steps;
    if (is_bad) {
      scale = std::max(1.0, scale / 2);
      finite_steps = 0;
      return told;
    }
    if (++finite_steps == kInterval) {
      scale *= 4;
      finite_steps = 0;
    }
    for (Weights* weights : {&a, &b}) update(*weights, told);
    ++updates;
    return told;
  }

 private:
  double rate() const {
    const auto done = static_cast<double>(updates);
    if (updates < kWarmUp) return kRate * (done + 1) / (kWarmUp + 1);
    return kRate + (kLeastRate - kRate) * std::min(1.0, (done - kWarmUp) / (kTotal - kWarmUp));
  }

  Told gradients_of(const Batch& batch, bool is_bad) {
    const double count = std::accumulate(std::begin(batch.mask), std::end(batch.mask), 0.0);
    double loss = 0;
    a.gradient.assign(a.value.size(), 0);
    b.gradient.assign(b.value.size(), 0);
    for (size_t token = 0; token < kRows * kTokens; ++token) {
      if (batch.mask[token] == 0) continue;
      double hidden[kHidden];
      double error = -double{batch.y[token]};
      for (size_t h = 0; h < kHidden; ++h) {
        double sum = 0;
        for (size_t i = 0; i < kInputs; ++i)
          sum += double{batch.x[token * kInputs + i]} * a.value[i * kHidden + h];
        hidden[h] = std::tanh(sum);
        error += hidden[h] * b.value[h];
      }
      loss += error * error / count;
      for (size_t h = 0; h < kHidden; ++h) {
        const double slope = 2 * error / count;
        b.gradient[h] += slope * hidden[h];
        for (size_t i = 0; i < kInputs; ++i)
          a.gradient[i * kHidden + h] += slope * b.value[h] * (1 - hidden[h] * hidden[h]) *
                                         double{batch.x[token * kInputs + i]};
      }
    }
    double squares = 0;
    for (const Weights* weights : {&a, &b})
      for (const double each : weights->gradient) squares += each * each;
    return {loss, std::sqrt(squares), rate(), is_bad ? 1.0 : 0.0};
  }

  void update(Weights& weights, const Told& told) const {
    const double clip = std::min(1.0, kClip / (told.norm + 1e-6));
    const auto t = static_cast<double>(updates) + 1;
    const double ema_decay = std::min(kEmaDecay, t / (t + 9));
    for (size_t i = 0; i < weights.value.size(); ++i) {
      const double g = weights.gradient[i] * clip;
      weights.first[i] = kBeta1 * weights.first[i] + (1 - kBeta1) * g;
      weights.second[i] = kBeta2 * weights.second[i] + (1 - kBeta2) * g * g;
      const double mean = weights.first[i] / (1 - std::pow(kBeta1, t));
      const double root = std::sqrt(weights.second[i] / (1 - std::pow(kBeta2, t)));
      weights.value[i] -= told.rate * (weights.decay * weights.value[i] + mean / (root + kEpsilon));
      weights.average[i] = ema_decay * weights.average[i] + (1 - ema_decay) * weights.value[i];
    }
  }
};

/// A training run of the program.
class Training {
 public:
  Training(const Microbatches& parts, DType precision, const OptimizerOptions& options,
           const LossFunction& loss = masked_error)
      : step_(trace_training_step(loss, kFields, options, parts)),
        state_(initial_state(step_, 7, cpu_device(2))),
        program_(Program::compile(step_.graph, state_, in(precision))) {}

  Told step(const Batch& batch) {
    const void* const pointers[] = {batch.x, batch.y, batch.mask};
    program_.run(pointers);
    return {program_.scalar("loss"), program_.scalar("gradient_norm"),
            program_.scalar("learning_rate"), program_.scalar("skipped")};
  }
  std::vector<double> values(const std::string& name) {
    const std::vector<float> found = state_.read<float>(name);
    return {found.begin(), found.end()};
  }
  int64_t count(const std::string& name) { return state_.read<int64_t>(name)[0]; }
  /// All of the State but the count of replays and what the loss scale lives on.
  std::string bytes() const {
    std::string all;
    for (size_t i = 0; i < state_.entries().size(); ++i) {
      const StateEntry& entry = state_.entries()[i];
      if (entry.name == "step" || entry.name == "loss_scale" || entry.name == "finite_steps")
        continue;
      const std::vector<char> bytes = state_.read<char>(entry.name);
      all.append(bytes.begin(), bytes.end());
    }
    return all;
  }
  Reference reference() {
    Reference result;
    for (auto [weights, name] : {std::pair{&result.a, "a"}, {&result.b, "b"}}) {
      weights->value = weights->average = values(name);
      weights->first.assign(weights->value.size(), 0);
      weights->second = weights->first;
    }
    result.a.decay = kDecay;  // matrices alone
    return result;
  }

 private:
  static CompileOptions in(DType precision) {
    CompileOptions options;
    options.precision = precision;
    return options;
  }

  TracedStep step_;
  State state_;
  Program program_;
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 double bound, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(found[i], expected[i], bound) << what << " element " << i;
}

/// A token of the batch that overflows: where, and what it is to predict.
struct Bad {
  uint64_t step;
  size_t row;
  float target;
};

// `bound`: of a gradient, in relation to its norm. AdamW divides by the root of the second moment, so that it bounds
// an update in relation to the rate too; elements whose gradients are small meet it many times.
void expect_follows_reference(Training& run, bool scaled, const std::vector<Bad>& bad,
                              double bound) {
  Reference reference = run.reference();
  int clipped = 0;
  for (uint64_t position = 0; position < 12; ++position) {
    SCOPED_TRACE("step " + std::to_string(position));
    Batch batch = batch_of(position);
    const auto found_bad = std::ranges::find(bad, position, &Bad::step);
    const bool is_bad = found_bad != bad.end();
    if (is_bad) {
      ASSERT_EQ(batch.mask[found_bad->row * kTokens], 1);
      batch.y[found_bad->row * kTokens] = found_bad->target;
    }
    const std::string before = run.bytes();
    const Told expected = reference.step(batch, is_bad);
    const Told told = run.step(batch);
    EXPECT_EQ(told.skipped, expected.skipped);
    EXPECT_NEAR(told.rate, expected.rate, 1e-7 * expected.rate);
    if (is_bad) {
      EXPECT_FALSE(std::isfinite(told.norm) && std::isfinite(told.loss));
      EXPECT_TRUE(run.bytes() == before) << "a skipped step leaves every bit";
    } else {
      EXPECT_NEAR(told.loss, expected.loss, bound * expected.loss);
      EXPECT_NEAR(told.norm, expected.norm, bound * expected.norm);
      clipped += expected.norm > kClip ? 1 : 0;
    }
    EXPECT_EQ(run.count("step"), reference.steps);
    EXPECT_EQ(run.count("updates"), reference.updates);
    if (scaled) {
      EXPECT_EQ(run.values("loss_scale")[0], reference.scale);
      EXPECT_EQ(run.count("finite_steps"), reference.finite_steps);
    }
    for (const auto& [weights, name] :
         {std::pair{&reference.a, std::string("a")}, {&reference.b, std::string("b")}}) {
      expect_near(run.values(name), weights->value, 10 * bound, name);
      expect_near(run.values(name + ".moment1"), weights->first, bound, name + ".moment1");
      expect_near(run.values(name + ".moment2"), weights->second, bound, name + ".moment2");
      expect_near(run.values(name + ".average"), weights->average, 10 * bound, name + ".average");
    }
  }
  EXPECT_GT(clipped, 4);
}

const std::vector<Microbatches> kCuts = {{1, 1}, {1, 2}, {1, 4}, {3, 1}, {3, 2}, {3, 4}};

std::string name_of(const Microbatches& parts) {
  return "accumulate " + std::to_string(parts.accumulate) + ", microbatches " +
         std::to_string(parts.parallel);
}

// The square of 1e25 is infinite.
const std::vector<Bad> kBadOfF32 = {
    {2, 1, -1e25F}, {3, 11, 1e25F}, {4, 1, NAN}, {8, 6, 1e25F}, {9, 5, INFINITY}};

TEST(StepReference, HasTheNumbersOfF32InAnyParts) {
  for (const Microbatches& parts : kCuts) {
    SCOPED_TRACE(name_of(parts));
    Training run(parts, DType::f32, options_of(false));
    expect_follows_reference(run, false, kBadOfF32, 2e-6);
  }
}

TEST(StepReference, ScalesTheLossOnceInAnyParts) {
  for (const Microbatches& parts : kCuts) {
    SCOPED_TRACE(name_of(parts));
    Training run(parts, DType::f32, options_of(true));
    expect_follows_reference(run, true, kBadOfF32, 2e-6);
  }
}

// An error of 4,000 times the scale is beyond f16's 65,504 in one microbatch, and in no other.
TEST(StepReference, HasTheNumbersOfF16InAnyParts) {
  const std::vector<Bad> bad = {{1, 1, 4e3F}, {2, 11, -4e3F}, {8, 6, 4e3F}};
  for (const Microbatches& parts : kCuts) {
    SCOPED_TRACE(name_of(parts));
    Training run(parts, DType::f16, options_of(true));
    expect_follows_reference(run, true, bad, 2e-3);
  }
}

// A token in each microbatch whose scaled gradient is within f16: half of the batch has the gradients of all of it,
// however many tokens it sums over.
TEST(StepReference, MicrobatchesOverflowNoSoonerThanTheBatch) {
  for (const Microbatches& parts : {Microbatches{1, 1}, Microbatches{1, 2}, Microbatches{2, 1}}) {
    SCOPED_TRACE(name_of(parts));
    OptimizerOptions options = options_of(true);
    options.loss_scaling.initial = 32768;
    Training run(parts, DType::f16, options);
    EXPECT_EQ(run.step(batch_of(0)).skipped, 0);
  }
}

// Of finite gradients whose squares are not: to clip by that norm would make zeros of them.
TEST(StepReference, AnInfiniteNormOfFiniteGradientsIsASkippedStep) {
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor weight = trace.parameter("weight", {}, Initializer::ones());
    return reduce_mean(batch[1], {0, 1}) * weight;
  };
  for (const Microbatches& parts : kCuts) {
    SCOPED_TRACE(name_of(parts));
    Training run(parts, DType::f32, options_of(false), loss);
    Batch batch = batch_of(0);
    EXPECT_EQ(run.step(batch).skipped, 0);
    const std::string before = run.bytes();
    for (const float value : {1e25F, -1e25F}) {
      batch.y[7] = value;
      const Told told = run.step(batch);
      EXPECT_TRUE(std::isfinite(told.loss));
      EXPECT_EQ(told.norm, INFINITY);
      EXPECT_EQ(told.skipped, 1);
      EXPECT_TRUE(run.bytes() == before);
    }
    EXPECT_EQ(run.count("step"), 3);
    EXPECT_EQ(run.count("updates"), 1);
  }
}

TEST(StepReference, HasTheNumbersOfBf16InAnyParts) {
  for (const Microbatches& parts : kCuts) {
    SCOPED_TRACE(name_of(parts));
    Training run(parts, DType::bf16, options_of(false));
    expect_follows_reference(run, false, kBadOfF32, 1.5e-2);
  }
}

}  // namespace
}  // namespace fullbore
