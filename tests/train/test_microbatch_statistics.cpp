// State that a model updates in each microbatch: running statistics of batch normalisation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/nn/image_layers.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/updated_state.h"
#include "tests/support/device.h"
#include "tests/train/batch_of_rows.h"

namespace fullbore {
namespace {

using testing_support::Batch;
using testing_support::batch_of;
using testing_support::cpu_device;
using testing_support::kFields;
using testing_support::kRows;
using testing_support::kWidth;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal(const LossFunction& loss, const Microbatches& microbatches) {
  try {
    trace_training_step(loss, kFields, {}, microbatches);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// tanh(x scale), normalised, summed along a row: the gradient goes through statistics of the batch.
Loss normalized_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor scale = trace.parameter("scale", {kWidth}, Initializer::ones());
  const Tensor rows = nn::batch_norm(trace, "norm", tanh(batch[0] * scale));
  const Tensor error = reduce_sum(rows, {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

/// normalized_error() and its training by gradient descent in double, as PyTorch does it where it accumulates gradients:
/// each of `parts` microbatches is normalised by its own statistics, which go into the running ones in turn.
struct NormalizedModel {
  static constexpr size_t kColumns = kWidth;
  double scale[kColumns], gain[kColumns], bias[kColumns], mean[kColumns], variance[kColumns];

  NormalizedModel() {
    for (double* const ones : {scale, gain, variance}) std::fill_n(ones, kColumns, 1.0);
    for (double* const zeros : {bias, mean}) std::fill_n(zeros, kColumns, 0.0);
  }

  double step(const Batch& batch, size_t parts, double rate) {
    constexpr double kEpsilon = 1e-5, kMomentum = 0.1;
    const size_t rows = kRows / parts;
    double loss = 0, dscale[kColumns] = {}, dgain[kColumns] = {}, dbias[kColumns] = {};
    for (size_t part = 0; part < parts; ++part) {
      std::vector<double> x(rows * kColumns), h(x.size()), normal(x.size()), error(rows);
      double deviation[kColumns];
      for (size_t r = 0; r < rows; ++r) error[r] = -batch.y[part * rows + r];
      const auto n = static_cast<double>(rows);
      for (size_t c = 0; c < kColumns; ++c) {
        double sum = 0, squares = 0;
        for (size_t i = c; i < x.size(); i += kColumns) {
          x[i] = batch.x[part * x.size() + i];
          sum += h[i] = std::tanh(x[i] * scale[c]);
        }
        for (size_t i = c; i < x.size(); i += kColumns)
          squares += (h[i] - sum / n) * (h[i] - sum / n);
        deviation[c] = std::sqrt(squares / n + kEpsilon);
        for (size_t r = 0; r < rows; ++r) {
          normal[r * kColumns + c] = (h[r * kColumns + c] - sum / n) / deviation[c];
          error[r] += gain[c] * normal[r * kColumns + c] + bias[c];
        }
        mean[c] += kMomentum * (sum / n - mean[c]);
        variance[c] += kMomentum * (squares / (n - 1) - variance[c]);
      }
      for (const double each : error) loss += each * each / kRows;
      for (size_t c = 0; c < kColumns; ++c) {
        double sum = 0, along = 0;  // of dy, and of dy times the normalised value
        for (size_t r = 0; r < rows; ++r) {
          sum += 2 * error[r] / kRows;
          along += 2 * error[r] / kRows * normal[r * kColumns + c];
        }
        dbias[c] += sum;
        dgain[c] += along;
        for (size_t r = 0; r < rows; ++r) {
          const size_t i = r * kColumns + c;
          const double dh =
              gain[c] / deviation[c] * (2 * error[r] / kRows - sum / n - normal[i] * along / n);
          dscale[c] += dh * (1 - h[i] * h[i]) * x[i];
        }
      }
    }
    for (size_t c = 0; c < kColumns; ++c) {
      scale[c] -= rate * dscale[c];
      gain[c] -= rate * dgain[c];
      bias[c] -= rate * dbias[c];
    }
    return loss;
  }
};

TEST(MicrobatchStatistics, AreHandedOnOneAfterAnother) {
  OptimizerOptions options{.name = "sgd", .schedule = {"constant", 0.05, 0, 0, 1}};
  options.momentum = options.weight_decay = options.clip_norm = 0;
  for (const int64_t parts : {1, 2, 3, 4}) {
    SCOPED_TRACE(parts);
    const TracedStep step =
        trace_training_step(normalized_error, kFields, options, {.accumulate = parts});
    State state = initial_state(step, 7, cpu_device(2));
    Program program = Program::compile(step.graph, state);
    NormalizedModel expected;
    for (uint64_t position = 0; position < 4; ++position) {
      const Batch batch = batch_of(position);
      const void* const pointers[] = {batch.x, batch.y};
      program.run(pointers);
      const double loss = expected.step(batch, static_cast<size_t>(parts), 0.05);
      EXPECT_NEAR(program.scalar("loss"), loss, 1e-5 * loss) << "step " << position;
    }
    const std::pair<const char*, const double*> entries[] = {
        {"scale", expected.scale},
        {"norm.weight", expected.gain},
        {"norm.bias", expected.bias},
        {"norm.running_mean", expected.mean},
        {"norm.running_var", expected.variance}};
    for (const auto& [name, values] : entries) {
      const std::vector<float> found = state.read<float>(name);
      for (size_t c = 0; c < NormalizedModel::kColumns; ++c)
        EXPECT_NEAR(found[c], values[c], 2e-6) << name << ' ' << c;
    }
  }
}

// Counted ahead, the model is traced once more, and its statistics are to be updated once.
TEST(MicrobatchStatistics, AreUpdatedOnceWhereTermsAreCounted) {
  const auto running = [](bool counted) {
    const LossFunction loss = [=](Trace& trace, std::span<const Tensor> batch) {
      Loss made = normalized_error(trace, batch);
      if (counted) made.terms = {{made.mean, reduce_sum(exp(batch[1]), {0})}};
      return made;
    };
    const TracedStep step = trace_training_step(loss, kFields, {}, {.accumulate = 3});
    State state = initial_state(step, 7, cpu_device(1));
    Program program = Program::compile(step.graph, state);
    const Batch batch = batch_of(0);
    const void* const pointers[] = {batch.x, batch.y};
    program.run(pointers);
    return state.read<float>("norm.running_mean");
  };
  EXPECT_EQ(running(true), running(false));
}

TEST(MicrobatchStatistics, AreRefusedSideBySide) {
  for (const Microbatches& microbatches : std::vector<Microbatches>{{1, 2}, {2, 3}}) {
    const std::string message = refusal(normalized_error, microbatches);
    EXPECT_THAT(message, HasSubstr("the model updates State with each ('norm.running_mean')"));
    EXPECT_THAT(message, HasSubstr("give engine.accumulate alone"));
  }
  const LossFunction reports = [](Trace& trace, std::span<const Tensor> batch) {
    Loss loss = normalized_error(trace, batch);
    trace.result("own", loss.mean);
    return loss;
  };
  EXPECT_THAT(refusal(reports, {2, 1}), HasSubstr("reports results of its own"));
}

TEST(MicrobatchStatistics, AreToldFromOtherState) {
  const UpdatedState updated = updated_state(normalized_error, kFields);
  EXPECT_THAT(updated.names, ElementsAre("norm.running_mean", "norm.running_var"));
  EXPECT_FALSE(updated.others);
  const LossFunction plain = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor draws = random_uniform(trace.random(), {DType::f32, {kRows}});
    return reduce_mean(draws * batch[1], {0});
  };
  EXPECT_THAT(updated_state(plain, kFields).names, IsEmpty());
}

}  // namespace
}  // namespace fullbore
