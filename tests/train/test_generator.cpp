#include <gtest/gtest.h>

#include <vector>

#include "fullbore/ops/ops.h"
#include "fullbore/train/evaluator.h"
#include "fullbore/train/generator.h"

namespace fullbore {
namespace {

constexpr int64_t kVocabulary = 10;
constexpr int64_t kContext = 4;

/// The likeliest token after t is t + 1, wrapped.
Tensor successor_logits(Trace& trace, Tensor tokens) {
  const Tensor next = remainder(tokens + 1.0, static_cast<double>(kVocabulary));
  (void)trace;
  return one_hot(next, kVocabulary, DType::f32) * 50.0;
}

/// The likeliest token is the sum of the window so far, wrapped: every position counts, and what
/// lies to the right of the last token must not.
Tensor sum_logits(Trace& trace, Tensor tokens) {
  (void)trace;
  const Tensor sum = remainder(cumsum(tokens, 1), static_cast<double>(kVocabulary));
  return one_hot(sum, kVocabulary, DType::f32) * 50.0;
}

std::vector<int32_t> continue_by(const LogitsFunction& logits, std::vector<int32_t> prompt,
                                 int64_t count) {
  State state;
  Team team(2);
  Generator generator(logits, kContext, state, team, {});
  std::vector<int32_t> made;
  generator.generate(std::move(prompt), count, {.temperature = 1, .top_k = 0}, 3,
                     [&](int32_t token) { made.push_back(token); });
  return made;
}

TEST(Generator, ContinuesBeyondTheContext) {
  EXPECT_EQ(continue_by(successor_logits, {7}, 8), (std::vector<int32_t>{8, 9, 0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(continue_by(successor_logits, {1, 2, 3, 4, 5, 6}, 2), (std::vector<int32_t>{7, 8}))
      << "a prompt longer than the context";
  EXPECT_TRUE(continue_by(successor_logits, {1}, 0).empty());
}

TEST(Generator, SeesTheLastTokensOfTheWindowAndNothingElse) {
  // Windows: 1 2 -> 3; 1 2 3 -> 6; 1 2 3 6 -> 12; 2 3 6 2 -> 13; 3 6 2 3 -> 14.
  EXPECT_EQ(continue_by(sum_logits, {1, 2}, 5), (std::vector<int32_t>{3, 6, 2, 3, 4}));
}

// Batches of which the loss is their position + 1, with 4, 4 and 2 predictions in 4 rows.
class Numbers : public BatchSource {
 public:
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    *static_cast<float*>(buffers[0]) = static_cast<float>(position + 1);
  }

 private:
  std::vector<BatchField> fields_ = {{"value", {DType::f32, {}}}};
};

TEST(Evaluator, WeighsBatchesByTheirPredictions) {
  ValidationSet set;
  set.source = std::make_shared<Numbers>();
  set.batches = 3;
  set.rows = 4;
  set.predictions = [](uint64_t position) { return position == 2 ? 2 : 4; };
  State state;
  Team team(1);
  Evaluator evaluator([](Trace&, std::span<const Tensor> batch) { return batch[0] * 1.0; }, set,
                      state, team, {});
  std::vector<uint64_t> asked;
  const auto loss = evaluator.evaluate([&](uint64_t done) {
    asked.push_back(done);
    return true;
  });
  // Padding adds zero to a batch's sum, so the last batch's mean of 3 over 4 rows is a sum of 12.
  EXPECT_EQ(loss, (4 * 1.0 + 4 * 2.0 + 4 * 3.0) / 10);
  EXPECT_EQ(asked, (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(evaluator.evaluate([](uint64_t done) { return done < 2; }), std::nullopt);
  EXPECT_EQ(evaluator.evaluate([](uint64_t) { return true; }), loss) << "starts over each time";
}

}  // namespace
}  // namespace fullbore
