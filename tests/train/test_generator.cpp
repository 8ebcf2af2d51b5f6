#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fullbore/ops/ops.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/generator.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kVocabulary = 10;

/// Remembers every token at its place and makes likeliest the sum, wrapped, of those up to `row`:
/// each of them counts, padding must not.
Tensor sum_logits(Trace& trace, Tensor tokens, Tensor position, Tensor row, int64_t capacity) {
  const Tensor places = trace.state("places", Role::recurrent,
                                    {DType::i32, {tokens.dim(0), capacity}}, Initializer::zeros());
  const Tensor next = dynamic_update_slice(places, tokens, position, 1);
  trace.update(places, next);
  const Tensor seen =
      less_equal(iota(trace.builder(), {DType::i64, {capacity}}, 0), position + row);
  const Tensor sum = reduce_sum(select(seen, next, 0.0), {1});
  return one_hot(remainder(sum, static_cast<double>(kVocabulary)), kVocabulary, DType::f32) * 50.0;
}

/// All tokens are equally likely.
Tensor flat_logits(Trace& trace, Tensor tokens, Tensor, Tensor, int64_t) {
  return full(trace.builder(), {DType::f32, {tokens.dim(0), kVocabulary}}, 0);
}

class Texts {
 public:
  Texts(const DecodeFunction& decode, GeneratorSizes sizes)
      : state_(state_entries(Generator::trace(decode, sizes, 1)), cpu_device(2)),
        generator_(decode, sizes, state_, {}),
        samples_(sizes.samples) {}

  using Rows = std::vector<std::vector<int32_t>>;
  Rows generate(const std::vector<int32_t>& prompt, int64_t count, uint64_t seed = 3,
                const std::function<bool(int64_t, int32_t)>& goes_on = {}) {
    Rows made(static_cast<size_t>(samples_));
    generator_.generate(prompt, count, {}, seed, [&](int64_t sample, int32_t token) {
      made[static_cast<size_t>(sample)].push_back(token);
      return !goes_on || goes_on(sample, token);
    });
    return made;
  }

 private:
  State state_;
  Generator generator_;
  int64_t samples_;
};

std::vector<int32_t> sums(const std::vector<int32_t>& prompt, int64_t count, int64_t context,
                          int64_t chunk) {
  return Texts(sum_logits, {1, context, 0, chunk}).generate(prompt, count)[0];
}

TEST(Generator, SeesTheTokensOfTheContextAndNothingElse) {
  // 1 2 -> 3; 1 2 3 -> 6; 1 2 3 6 -> 12. Then the last half of the four places, with the new token,
  // begins anew: 6 2 -> 8; 6 2 8 -> 16; 6 2 8 6 -> 22; 6 2 -> 8.
  for (const int64_t chunk : {1, 2, 3, 4, 64})
    EXPECT_EQ(sums({1, 2}, 7, 4, chunk), (std::vector<int32_t>{3, 6, 2, 8, 6, 2, 8})) << chunk;
}

TEST(Generator, TakesPromptsOfEveryLength) {
  std::vector<int32_t> prompt;
  int32_t sum = 0;
  for (int32_t length = 1; length <= 11; ++length) {
    prompt.push_back(length);
    sum += length;
    for (const int64_t chunk : {3, 4, 11})
      EXPECT_EQ(sums(prompt, 1, 11, chunk), (std::vector<int32_t>{sum % 10})) << length;
  }
}

TEST(Generator, OfAPromptLongerThanTheContextTheEndCounts) {
  EXPECT_EQ(sums({9, 9, 9, 1, 2, 3, 1}, 3, 4, 2), (std::vector<int32_t>{7, 8, 6}))
      << "1 2 3 1 -> 7; then of the last half 1 7 -> 8; 1 7 8 -> 16";
}

TEST(Generator, AContextOfOneSeesTheLastToken) {
  EXPECT_EQ(sums({5, 4}, 3, 1, 8), (std::vector<int32_t>{4, 4, 4}));
}

TEST(Generator, MakesNothingWhenNothingIsAskedFor) { EXPECT_TRUE(sums({1}, 0, 4, 2).empty()); }

TEST(Generator, SamplesAreIndependentAndTheFirstIsTheSameHoweverMany) {
  Texts one(flat_logits, {1, 8, 0, 4});
  Texts three(flat_logits, {3, 8, 0, 4});
  const Texts::Rows rows = three.generate({1}, 20, 5);
  EXPECT_EQ(rows[0], one.generate({1}, 20, 5)[0]);
  EXPECT_NE(rows[1], rows[0]);
  EXPECT_NE(rows[2], rows[1]);
  EXPECT_EQ(three.generate({1}, 20, 5), rows) << "the same seed, the same texts";
  EXPECT_NE(three.generate({1}, 20, 6), rows);
}

TEST(Generator, ATextThatEndsLeavesTheOthersAlone) {
  Texts texts(flat_logits, {3, 8, 0, 4});
  const Texts::Rows all = texts.generate({1}, 12, 5);
  Texts::Rows some = all;
  some[1].resize(3);
  int64_t count = 0;
  EXPECT_EQ(texts.generate({1}, 12, 5,
                           [&](int64_t sample, int32_t) { return sample != 1 || ++count < 3; }),
            some);
  const Texts::Rows none = texts.generate({1}, 1000, 5, [](int64_t, int32_t) { return false; });
  for (const std::vector<int32_t>& row : none) EXPECT_EQ(row.size(), 1U);
}

TEST(Generator, IgnoresLogitsBeyondTheVocabulary) {
  Texts texts(flat_logits, {1, 8, 3, 4});
  const Texts::Rows rows = texts.generate({1}, 200);
  for (const int32_t token : rows[0]) EXPECT_LT(token, 3);
}

// Batches of which the loss is their position + 1, with 4, 4 and 2 predictions; the last is shorter.
class Numbers : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return shapes_[0]; }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override { return position == 2 ? 1 : 0; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    auto* const values = static_cast<float*>(buffers[0]);
    std::fill_n(values, position == 2 ? 2 : 4, static_cast<float>(position + 1));
  }

 private:
  std::vector<std::vector<BatchField>> shapes_ = {{{"values", {DType::f32, {4}}}},
                                                  {{"values", {DType::f32, {2}}}}};
};

TEST(Evaluator, WeighsBatchesByTheirPredictions) {
  ValidationSet set;
  set.source = std::make_shared<Numbers>();
  set.batches = 3;
  State state({}, cpu_device(1));
  const LossFunction loss_function = [](Trace& trace, std::span<const Tensor> batch) {
    const TensorType scalar{DType::f32, {}};
    return Loss(reduce_mean(batch[0], {0}),
                full(trace.builder(), scalar, static_cast<double>(batch[0].dim(0))));
  };
  Evaluator evaluator(loss_function, set, state, {});
  std::vector<uint64_t> asked;
  const auto result = evaluator.evaluate([&](uint64_t done) {
    asked.push_back(done);
    return true;
  });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->loss, (4 * 1.0 + 4 * 2.0 + 2 * 3.0) / 10);
  EXPECT_EQ(result->predictions, 10);
  EXPECT_EQ(evaluator.plans().size(), 2U);
  EXPECT_EQ(asked, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_FALSE(evaluator.evaluate([](uint64_t done) { return done < 2; }).has_value());
  EXPECT_EQ(evaluator.evaluate([](uint64_t) { return true; })->loss, result->loss)
      << "starts over each time";
}

}  // namespace
}  // namespace fullbore
