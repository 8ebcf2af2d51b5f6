#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/data/character_tokenizer.h"
#include "workloads/long_context/example_batches.h"
#include "workloads/long_context/needle_example.h"

namespace fullbore::long_context {
namespace {

using ::testing::HasSubstr;

struct Batch {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  bool operator==(const Batch&) const = default;
};

Batch batch_at(const BatchSource& source, uint64_t position) {
  const TensorType type = source.shapes()[source.shape_at(position)][0].type;
  const auto size = static_cast<size_t>(type.elements());
  Batch batch{std::vector<int32_t>(size), std::vector<int32_t>(size)};
  void* const buffers[] = {batch.inputs.data(), batch.targets.data()};
  source.fill(position, buffers);
  return batch;
}

const std::vector<RecallSizes> kMix = {{64, 32, 4}, {64, 16, 2}, {64, 32, 8}};

TEST(RecallBatches, AreAMixOfSizes) {
  const RecallBatches source(kMix, 3, 1, ExampleUse::training);
  ASSERT_EQ(source.shapes().size(), 2U);
  EXPECT_EQ(source.fields()[0].type.shape, (Shape{3, 32}));
  std::set<int64_t> asked;
  for (uint64_t position = 0; position < 30; ++position) {
    const Batch batch = batch_at(source, position);
    asked.insert(std::ranges::count_if(batch.targets, [](int32_t each) { return each >= 0; }));
  }
  EXPECT_EQ(asked, (std::set<int64_t>{3 * 4, 3 * 2, 3 * 8}));
}

TEST(RecallBatches, AreFunctionsOfTheirPosition) {
  const RecallBatches source(kMix, 3, 1, ExampleUse::training);
  EXPECT_EQ(batch_at(source, 7), batch_at(source, 7));
  EXPECT_NE(batch_at(source, 7), batch_at(source, 8));
  EXPECT_NE(batch_at(source, 7), batch_at(RecallBatches(kMix, 3, 2, ExampleUse::training), 7));
}

TEST(RecallBatches, HeldOutOnesGoThroughTheSizesAndAreOthers) {
  const RecallBatches source(kMix, 1, 1, ExampleUse::validation);
  EXPECT_EQ(source.shape_at(0), 1U);
  EXPECT_EQ(source.shape_at(1), 0U);
  EXPECT_EQ(source.shape_at(2), 1U);
  const RecallBatches training({kMix[0]}, 1, 1, ExampleUse::training);
  const RecallBatches held_out({kMix[0]}, 1, 1, ExampleUse::validation);
  EXPECT_NE(batch_at(training, 0), batch_at(held_out, 0));
}

std::shared_ptr<const Tokenizer> letters() {
  const std::string alphabet = shakespeare_alphabet();
  return std::make_shared<CharacterTokenizer>(
      std::vector<char32_t>(alphabet.begin(), alphabet.end()));
}

TEST(PasskeyBatches, AskForTheValueAlone) {
  const auto tokenizer = letters();
  const PasskeyBatches source(tokenizer, {.shortest = 40, .longest = 90, .batch_size = 20}, 5,
                              ExampleUse::training);
  ASSERT_EQ(source.fields()[0].type.shape, (Shape{20, 94}));
  const Batch batch = batch_at(source, 3);
  std::set<size_t> lengths;
  for (size_t row = 0; row < 20; ++row) {
    const std::span<const int32_t> inputs = std::span(batch.inputs).subspan(row * 94, 94);
    const std::span<const int32_t> targets = std::span(batch.targets).subspan(row * 94, 94);
    std::vector<int32_t> asked;
    size_t last = 0;
    for (size_t i = 0; i < 94; ++i)
      if (targets[i] >= 0) {
        asked.push_back(targets[i]);
        last = i;
      }
    const std::string answer = tokenizer->decode(asked).take_or_throw();
    ASSERT_EQ(answer.size(), 5U);
    const std::string text = tokenizer->decode(inputs.first(last - 3)).take_or_throw();
    EXPECT_THAT(text, ::testing::EndsWith(": ")) << "the first letter is asked for by the question";
    EXPECT_THAT(text, HasSubstr(text.substr(text.size() - 7, 7) + answer + ".\n"));
    EXPECT_GE(text.size(), 40U);
    EXPECT_LE(text.size(), 90U);
    lengths.insert(text.size());
  }
  EXPECT_GT(lengths.size(), 8U);
  EXPECT_EQ(batch_at(source, 3), batch);
  EXPECT_NE(batch_at(PasskeyBatches(tokenizer, {40, 90, 20}, 5, ExampleUse::validation), 3), batch);
}

TEST(PasskeyBatches, RefuseWhatCannotBeSpelledOrDoesNotFit) {
  const auto message = [](const std::shared_ptr<const Tokenizer>& tokenizer, int64_t shortest) {
    try {
      PasskeyBatches(tokenizer, {.shortest = shortest, .longest = 90}, 5, ExampleUse::training);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(message(letters(), 21), "taken");
  EXPECT_THAT(message(letters(), 20), HasSubstr("take 21 characters"));
  EXPECT_THAT(message(std::make_shared<CharacterTokenizer>(std::vector<char32_t>{U'a'}), 40),
              HasSubstr("cannot spell a passkey"));
}

}  // namespace
}  // namespace fullbore::long_context
