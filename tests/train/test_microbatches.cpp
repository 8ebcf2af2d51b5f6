// A batch in microbatches is the whole batch: the same step, whatever the microbatches have to predict.
#include "fullbore/train/microbatches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using ::testing::HasSubstr;

constexpr int64_t kRows = 12;
constexpr int64_t kWidth = 4;
const std::vector<BatchField> kFields = {{"x", {DType::f32, {kRows, kWidth}}},
                                         {"y", {DType::f32, {kRows}}},
                                         {"counts", {DType::f32, {kRows}}}};
const std::vector<Microbatches> kCuts = {{2, 1}, {3, 1}, {1, 2}, {1, 3}, {3, 2}};

// Rows count for 0 to 11 predictions each; one matrix is used twice.
Loss ragged_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor matrix = trace.parameter("matrix", {kWidth, kWidth}, Initializer::normal(0.5));
  const Tensor hidden = tanh(matmul(tanh(matmul(batch[0], matrix)), matrix));
  const Tensor error = reduce_sum(hidden, {1}) - batch[1];
  const Tensor predictions = reduce_sum(batch[2], {0});
  return {reduce_sum(error * error * batch[2], {0}) / predictions, predictions};
}

Loss even_error(Trace& trace, std::span<const Tensor> batch) {
  const Loss ragged = ragged_error(trace, batch);
  return ragged.mean;
}

struct alignas(64) Batch {
  float x[kRows * kWidth];
  alignas(64) float y[kRows];
  alignas(64) float counts[kRows];
};

Batch batch_of(uint64_t position, bool ragged) {
  Batch batch = {};
  PhiloxStream draws(5, position);
  for (float& value : batch.x) value = static_cast<float>(draws.normal());
  for (float& value : batch.y) value = static_cast<float>(draws.normal());
  for (size_t i = 0; i < kRows; ++i) batch.counts[i] = ragged ? static_cast<float>(i) : 1;
  return batch;
}

struct Trained {
  std::vector<float> losses;
  std::vector<float> matrix;
  int64_t arena_bytes = 0;
};

Trained train(const LossFunction& loss, bool ragged, const Microbatches& microbatches,
              double loss_scale = 0, int workers = 2) {
  OptimizerOptions options{.name = "muon", .schedule = {"constant", 0.1, 0, 0, 1}};
  options.loss_scaling.initial = loss_scale;
  const TracedStep step = trace_training_step(loss, kFields, options, microbatches);
  State state = initial_state(step, 7, cpu_device(workers));
  Program program = Program::compile(step.graph, state);
  Trained result;
  for (uint64_t position = 0; position < 5; ++position) {
    const Batch batch = batch_of(position, ragged);
    const void* const pointers[] = {batch.x, batch.y, batch.counts};
    program.run(pointers);
    result.losses.push_back(static_cast<float>(program.scalar("loss")));
    EXPECT_EQ(program.scalar("skipped"), 0);
  }
  Edited<float> matrix(state, "matrix");
  result.matrix.assign(matrix.begin(), matrix.end());
  result.arena_bytes = program.plan().arena_bytes;
  return result;
}

void expect_same(const Trained& microbatches, const Trained& whole) {
  for (size_t i = 0; i < whole.losses.size(); ++i)
    EXPECT_NEAR(microbatches.losses[i], whole.losses[i], 1e-5 * whole.losses[i]) << "step " << i;
  for (size_t i = 0; i < whole.matrix.size(); ++i)
    EXPECT_NEAR(microbatches.matrix[i], whole.matrix[i], 2e-5);
}

TEST(Microbatches, OfUnequalPredictionsMakeTheStepOfTheWholeBatch) {
  const Trained whole = train(ragged_error, true, {});
  for (const Microbatches& microbatches : kCuts)
    expect_same(train(ragged_error, true, microbatches), whole);
}

// Row 0 predicts nothing: a microbatch of it alone is not finite, and no batch should be cut so.
TEST(Microbatches, ThatCountAlikeNeedNoCounts) {
  const Trained whole = train(even_error, false, {});
  for (const Microbatches& microbatches : kCuts)
    expect_same(train(even_error, false, microbatches), whole);
  expect_same(train(even_error, false, {.accumulate = 12}), whole);
  expect_same(train(even_error, false, {.parallel = 12}), whole);
}

// Nor does it matter that a thread group makes several microbatches, or several workers one.
TEST(Microbatches, InParallelHaveTheSameBitsOnAnyNumberOfWorkers) {
  for (const Microbatches& microbatches : std::vector<Microbatches>{{1, 3}, {3, 2}}) {
    const Trained one = train(ragged_error, true, microbatches, 0, 1);
    for (const int workers : {2, 3, 4, 7}) {
      const Trained many = train(ragged_error, true, microbatches, 0, workers);
      EXPECT_EQ(many.losses, one.losses) << workers;
      EXPECT_EQ(many.matrix, one.matrix) << workers;
    }
  }
}

TEST(Microbatches, AndLossScalingGoTogether) {
  const Trained whole = train(ragged_error, true, {});
  for (const Microbatches& microbatches : kCuts)
    expect_same(train(ragged_error, true, microbatches, 1024), whole);
}

TEST(Microbatches, DrawsAnewForEach) {
  const LossFunction noise = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::ones());
    const Tensor draws =
        random_uniform(trace.random(), {DType::f32, {batch[0].dim(0), kWidth}}) * weight;
    return reduce_mean(draws, {0, 1});
  };
  const auto first_loss = [&](const std::vector<BatchField>& fields,
                              const Microbatches& microbatches) {
    const TracedStep step = trace_training_step(noise, fields, {}, microbatches);
    State state = initial_state(step, 7, cpu_device(1));
    Program program = Program::compile(step.graph, state);
    const Batch batch = batch_of(0, false);
    const void* const pointers[] = {batch.x};
    program.run(pointers);
    return program.scalar("loss");
  };
  const std::vector<BatchField> one = {{"x", {DType::f32, {1, kWidth}}}};
  const std::vector<BatchField> six = {{"x", {DType::f32, {6, kWidth}}}};
  const double microbatch = first_loss(one, {});
  for (const Microbatches& microbatches : std::vector<Microbatches>{{6, 1}, {1, 6}, {3, 2}, {2, 3}})
    EXPECT_GT(std::abs(first_loss(six, microbatches) - microbatch), 1e-4)
        << "all microbatches drew what the first one had drawn";
  EXPECT_EQ(first_loss(six, {2, 3}), first_loss(six, {6, 1})) << "microbatches are counted alike";
}

// The loops of a model may begin with constants of trace.builder(), the graph around all microbatches: they belong to
// the microbatch all the same, whose rows and weights their bodies read.
TEST(Microbatches, HaveLoopsThatBeginInTheGraphAroundThem) {
  const auto loss_of = [](bool nested, int64_t segments) -> LossFunction {
    return [=](Trace& trace, std::span<const Tensor> batch) -> Loss {
      const Tensor matrix = trace.parameter("matrix", {kWidth, kWidth}, Initializer::normal(0.5));
      const Tensor start = full(trace.builder(), {DType::f32, {batch[0].dim(0), kWidth}}, 0.25);
      const auto next = [&](Tensor hidden) { return tanh(matmul(hidden, matrix) + batch[0]); };
      const auto write = [&](const LoopBody& body) {
        const Tensor hidden = body.carried[0];
        if (!nested) return IterationResults{.carried = {next(hidden)}};
        const LoopResult inner =
            loop(hidden.builder(), {hidden}, {}, {.iterations = 2}, [&](const LoopBody& within) {
              return IterationResults{.carried = {next(within.carried[0])}};
            });
        return IterationResults{.carried = {inner.carried[0]}};
      };
      const LoopResult made =
          loop(trace.builder(), {start}, {}, {.iterations = 3, .segments = segments}, write);
      const Tensor error = reduce_sum(made.carried[0], {1}) - batch[1];
      return reduce_mean(error * error, {0});
    };
  };
  for (const bool nested : {false, true})
    for (const int64_t segments : {0, 2}) {
      const LossFunction loss = loss_of(nested, segments);
      const Trained whole = train(loss, false, {});
      for (const Microbatches& microbatches : kCuts)
        expect_same(train(loss, false, microbatches), whole);
    }
}

// Terms of unequal weights, one of which is told by draws: counted ahead, it must be of the same ones.
TEST(Microbatches, WeighEachTermByItsOwnCount) {
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Loss rows = ragged_error(trace, batch);
    const Tensor weight = trace.parameter("weight", {64}, Initializer::ones());
    const Tensor draws = random_uniform(trace.random(), {DType::f32, {64}}) * weight;
    const Tensor chosen = cast(greater(draws, 0.5), DType::f32);
    const Tensor count = reduce_sum(chosen, {0});
    const Tensor ones = reduce_sum(chosen, {0}) / count;
    Loss both = rows.mean + ones;
    both.predictions = rows.predictions;
    both.terms = {{rows.mean, rows.predictions}, {ones, count}};
    return both;
  };
  const Trained rows = train(ragged_error, true, {});
  for (const Microbatches& microbatches : kCuts) {
    const Trained both = train(loss, true, microbatches);
    for (size_t i = 0; i < rows.losses.size(); ++i)
      EXPECT_NEAR(both.losses[i], rows.losses[i] + 1, 1e-5) << "step " << i;
    for (size_t i = 0; i < rows.matrix.size(); ++i)
      EXPECT_NEAR(both.matrix[i], rows.matrix[i], 2e-5);
  }
}

std::string refusal(const LossFunction& loss, const std::vector<BatchField>& fields,
                    const Microbatches& microbatches) {
  try {
    trace_training_step(loss, fields, {}, microbatches);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// x has the batch for its second axis, and the table is every microbatch's.
TEST(Microbatches, AreCutAlongTheAxisThatIsTheBatch) {
  const LossFunction by_rows = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    return ragged_error(trace, batch);
  };
  const LossFunction by_columns = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    EXPECT_EQ(batch[3].shape(), Shape({3}));
    const Tensor rows[] = {transpose(batch[0], {1, 0}), batch[1], batch[2]};
    return ragged_error(trace, rows);
  };
  std::vector<BatchField> turned = kFields;
  turned[0] = {"x", {DType::f32, {kWidth, kRows}}, 1};
  turned.push_back({"table", {DType::f32, {3}}, -1});
  const Batch batch = batch_of(0, true);
  std::map<std::string, Literal> inputs;
  const auto give = [&](const std::string& name, const TensorType& type, const float* from) {
    inputs[name] = Literal::of(type, std::vector<double>(from, from + type.elements()));
  };
  give("y", kFields[1].type, batch.y);
  give("counts", kFields[2].type, batch.counts);
  std::vector<double> matrix;
  for (int64_t i = 0; i < kWidth * kWidth; ++i)
    matrix.push_back(0.1 * static_cast<double>(i % 7) - 0.3);
  inputs["matrix"] = Literal::of({DType::f32, {kWidth, kWidth}}, matrix);
  const auto results = [&](const LossFunction& loss, const std::vector<BatchField>& fields,
                           const Microbatches& microbatches) {
    const Graph graph = trace_training_step(loss, fields, {}, microbatches).graph;
    const auto found = interpret_by_name(graph, inputs);
    return std::pair(elements(found.at("loss"))[0], elements(found.at("gradient_norm"))[0]);
  };
  give("x", kFields[0].type, batch.x);
  const auto whole = results(by_rows, kFields, {});
  std::vector<float> columns;
  for (int64_t column = 0; column < kWidth; ++column)
    for (int64_t row = 0; row < kRows; ++row) columns.push_back(batch.x[row * kWidth + column]);
  give("x", turned[0].type, columns.data());
  for (const Microbatches& microbatches : kCuts) {
    const auto cut = results(by_columns, turned, microbatches);
    EXPECT_NEAR(cut.first, whole.first, 1e-5);
    EXPECT_NEAR(cut.second, whole.second, 1e-5);
  }
}

TEST(Microbatches, RefuseWhatCannotBeCut) {
  EXPECT_THAT(
      refusal(ragged_error, kFields, {4, 2}),
      HasSubstr(
          "a batch in 8 microbatches must have a multiple of as many rows, along the batch axis of "
          "every field; 'x' is f32[12,4]"));
  std::vector<BatchField> fields = kFields;
  fields.push_back({"temperature", {DType::f32, {3}}});
  EXPECT_THAT(refusal(ragged_error, fields, {2, 1}), HasSubstr("'temperature' is f32[3]"));
  fields.back().batch_axis = 1;
  EXPECT_THAT(refusal(ragged_error, fields, {2, 1}),
              HasSubstr("the batch is axis 1 of 'temperature', which is f32[3]"));
  EXPECT_THAT(refusal(ragged_error, {{"x", {DType::f32, {kRows, kWidth}}, -1}}, {2, 1}),
              HasSubstr("no field of it has an axis that is the batch"));
  const LossFunction sequence = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor sum = trace.state("sum", Role::recurrent, {DType::f32, {}}, Initializer::zeros());
    Loss loss = ragged_error(trace, batch);
    trace.update(sum, sum + loss.mean);
    return loss;
  };
  for (const Microbatches& microbatches : kCuts)
    EXPECT_THAT(refusal(sequence, kFields, microbatches),
                HasSubstr("updates State or reports results of its own"));
  const LossFunction vector_term = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    Loss loss = ragged_error(trace, batch);
    loss.terms = {{loss.mean, batch[2]}};
    return loss;
  };
  EXPECT_THAT(refusal(vector_term, kFields, {2, 1}),
              HasSubstr("mean or weight of a loss's term must be a scalar, this is f32[6]"));
  OptimizerOptions noise_scale;
  noise_scale.noise_scale = true;
  for (const Microbatches& microbatches : kCuts)
    EXPECT_THROW(trace_training_step(ragged_error, kFields, noise_scale, microbatches), UsageError);
}

// A largest value of the whole batch is that of a microbatch, negative ones too, and no mean of several.
TEST(Microbatches, TellTheLargestOfAMetric) {
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) {
    Loss made = ragged_error(trace, batch);
    made.metrics.push_back(
        {.name = "largest", .mean = reduce_max(batch[1], {0}) - 100.0, .largest = true});
    return made;
  };
  const Batch batch = batch_of(3, true);
  const float expected = *std::ranges::max_element(batch.y) - 100;
  for (const Microbatches& cut : kCuts) {
    TracedStep step = trace_training_step(loss, kFields, {}, cut);
    State state = initial_state(step, 1, cpu_device(2));
    Program program = Program::compile(step.graph, state, {});
    const void* const fields[] = {batch.x, batch.y, batch.counts};
    program.run(fields);
    EXPECT_EQ(program.scalar("largest"), expected) << cut.accumulate << ' ' << cut.parallel;
  }
}

}  // namespace
}  // namespace fullbore
