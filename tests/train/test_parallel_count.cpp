// How many microbatches a batch is cut into where nobody says.
#include "fullbore/train/parallel_count.h"

#include <gtest/gtest.h>

#include "fullbore/nn/image_layers.h"
#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

constexpr int64_t kRows = 4800, kWidth = 8;

std::vector<BatchField> fields_of(int64_t rows) {
  return {{"x", {DType::f32, {rows, kWidth}}}, {"y", {DType::f32, {rows}}}};
}

Loss squared_error(Trace& trace, std::span<const Tensor> batch) {
  const Tensor matrix = trace.parameter("matrix", {kWidth, kWidth}, Initializer::normal(0.5));
  const Tensor error = reduce_sum(matmul(batch[0], matrix), {1}) - batch[1];
  return reduce_mean(error * error, {0});
}

int64_t count(const LossFunction& loss, const std::vector<BatchField>& fields, int64_t parts) {
  return parallel_count(loss, {fields}, parts);
}

TEST(ParallelCount, IsFourOrTwoIfTheRowsGoRound) {
  EXPECT_EQ(count(squared_error, fields_of(kRows), 1), 4);
  EXPECT_EQ(count(squared_error, fields_of(kRows + 2), 1), 2);
  EXPECT_EQ(count(squared_error, fields_of(kRows + 1), 1), 1);
  EXPECT_EQ(count(squared_error, fields_of(kRows), 2), 4) << "of 600 rows each";
  EXPECT_EQ(count(squared_error, fields_of(kRows), 800), 1) << "of 6 rows, too few";
  EXPECT_EQ(count(squared_error, fields_of(kRows), 7), 1) << "is refused elsewhere";
  // Every shape of batch must be cut alike.
  EXPECT_EQ(parallel_count(squared_error, {fields_of(kRows), fields_of(1102)}, 1), 2);
}

TEST(ParallelCount, LooksAtWhatAMicrobatchDoesWithTheParameters) {
  EXPECT_EQ(count(squared_error, fields_of(2400), 1), 4);
  EXPECT_EQ(count(squared_error, fields_of(1200), 1), 2) << "300 rows of two flops each";
  EXPECT_EQ(count(squared_error, fields_of(400), 1), 2);
  EXPECT_EQ(count(squared_error, fields_of(100), 1), 1) << "50 rows of two flops each";
  EXPECT_EQ(count(squared_error, fields_of(400), 4), 1) << "in parts, too";
}

TEST(ParallelCount, KnowsTheOthersForRunsThatMemoryLimits) {
  const auto counts = [](int64_t rows, int64_t parts = 1) {
    return parallel_counts(squared_error, {fields_of(rows)}, parts);
  };
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(counts(2400), (Counts{4, 2, 1}));
  EXPECT_EQ(counts(400), (Counts{2, 4, 1}));
  EXPECT_EQ(counts(100), (Counts{1, 2, 4}));
  EXPECT_EQ(counts(402), (Counts{2, 1})) << "4 do not divide it";
  EXPECT_EQ(counts(102), (Counts{1, 2}));
  EXPECT_EQ(counts(101), (Counts{1}));
  EXPECT_EQ(counts(400, 4), (Counts{1, 2, 4})) << "of 100 rows";
}

// Each microbatch reads them, though they have no gradients.
TEST(ParallelCount, CountsFrozenWeights) {
  const auto behind = [](int64_t width) -> LossFunction {
    return [width](Trace& trace, std::span<const Tensor> batch) {
      Tensor extra;
      {
        const FrozenScope frozen(trace);
        extra = reduce_sum(
            matmul(batch[0], trace.parameter("given", {kWidth, width}, Initializer::normal(0.5))),
            {1});
      }
      return squared_error(trace, std::vector{batch[0], batch[1] + extra});
    };
  };
  // Of a narrow one a row does two flops with a weight, as with the trained ones.
  EXPECT_EQ(count(behind(kWidth), fields_of(2400), 1), 4);
  // By the 64 trained weights alone they would be 4.
  EXPECT_EQ(count(behind(1024), fields_of(1200), 1), 2);
  EXPECT_EQ(count(behind(1024), fields_of(100), 1), 1);
}

// Their gradients go through memory.
TEST(ParallelCount, AsksForMoreOfLargeModels) {
  const LossFunction large = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor table = trace.parameter("table", {kWidth, 2 << 20}, Initializer::zeros());
    return reduce_mean(matmul(batch[0], table), {0, 1});
  };
  EXPECT_EQ(count(large, fields_of(1 << 11), 1), 1);
  EXPECT_EQ(count(large, fields_of(1 << 12), 1), 2);
}

TEST(ParallelCount, IsOneWhereABatchCannotBeCut) {
  std::vector<BatchField> fields = fields_of(kRows);
  fields.push_back({"temperature", {DType::f32, {}}});
  EXPECT_EQ(count(squared_error, fields, 1), 4) << "a number is every part's";
  fields.back() = {"names", {DType::f32, {3}}};
  EXPECT_EQ(count(squared_error, fields, 1), 1);
  const LossFunction sequence = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor sum = trace.state("sum", Role::recurrent, {DType::f32, {}}, Initializer::zeros());
    Loss loss = squared_error(trace, batch);
    loss.carried = {{sum, sum + loss.mean}};
    return loss;
  };
  EXPECT_EQ(count(sequence, fields_of(kRows), 1), 1);
}

TEST(ParallelCount, IsOneWherePredictionsAreCounted) {
  const auto counted = [](bool by_predictions) {
    return [=](Trace& trace, std::span<const Tensor> batch) -> Loss {
      Loss loss = squared_error(trace, batch);
      const SharedScope shared = share(trace);
      const Tensor matrix = trace.parameter("matrix", {kWidth, kWidth}, Initializer::normal(0.5));
      const Tensor told = by_predictions ? reduce_sum(matmul(batch[0], matrix), {1}) : batch[1];
      loss.terms = {{loss.mean, reduce_sum(cast(greater(told, 0.0), DType::f32), {0})}};
      return loss;
    };
  };
  EXPECT_EQ(count(counted(false), fields_of(kRows), 1), 4);
  EXPECT_EQ(count(counted(true), fields_of(kRows), 1), 1);
}

// Its statistics are of the whole batch, and its State has no place in a microbatch.
TEST(ParallelCount, IsOneForBatchNormalization) {
  const LossFunction normalized = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor x = nn::batch_norm(trace, "norm", batch[0]);
    return squared_error(trace, std::vector{x, batch[1]});
  };
  EXPECT_EQ(parallel_counts(normalized, {fields_of(kRows)}, 1), std::vector<int64_t>{1});
}

}  // namespace
}  // namespace fullbore
