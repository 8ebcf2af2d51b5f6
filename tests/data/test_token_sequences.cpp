#include "fullbore/data/token_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "fullbore/data/loader.h"
#include "fullbore/data/recorded_tokenizer.h"
#include "tests/data/corpus.h"

namespace fullbore {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string letters(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>('a' + i % 26);
  return text;
}

struct Batch {
  std::vector<int32_t> inputs, targets;
  std::vector<uint8_t> resets;
};

Batch batch_of(const TokenSequences& sequences, uint64_t position) {
  Batch batch;
  batch.inputs.resize(static_cast<size_t>(sequences.fields()[0].type.elements()));
  batch.targets.resize(batch.inputs.size());
  batch.resets.resize(static_cast<size_t>(sequences.fields()[2].type.elements()), 7);
  void* const buffers[] = {batch.inputs.data(), batch.targets.data(), batch.resets.data()};
  sequences.fill(position, buffers);
  return batch;
}

// The counts of tiny-shakespeare's 1,115,394 characters.
TEST(TokenSequences, SplitsAsRecorded) {
  const struct {
    int64_t sequences, context, sequence, training, batches, validation, validation_batches;
  } cases[] = {{8, 256, 139'424, 125'481, 490, 13'943, 54},
               {64, 64, 17'428, 15'685, 245, 1'743, 27}};
  for (const auto& each : cases) {
    const SequenceSplit split = split_sequences(1'115'394, each.sequences, 0.1, "text");
    EXPECT_EQ(split.training.stride, each.sequence);
    EXPECT_EQ(split.training.length, each.training);
    EXPECT_EQ((split.training.length - 1) / each.context, each.batches);
    EXPECT_EQ(split.validation.begin, each.training);
    EXPECT_EQ(split.validation.stride, each.sequence);
    EXPECT_EQ(split.validation.length, each.validation);
    EXPECT_EQ((split.validation.length - 1) / each.context, each.validation_batches);
  }
  const TokenSplit whole = split_tokens(1'115'394, 0.1, "text");
  EXPECT_EQ(whole.training.size(), 1'003'854);
  EXPECT_EQ(whole.validation.size(), 111'540);
}

TEST(TokenSequences, EachBatchGoesOnWhereTheOneBeforeEnded) {
  const testing::ScratchFolder folder;
  const auto corpus = testing::corpus_of(folder, letters(203));
  const SequenceSplit split = split_sequences(corpus->size(), 4, 0.1, "text");  // 50: 45 and 5
  const auto sequences = TokenSequences::create(corpus, split.training, {6, 1}).take_or_throw();
  ASSERT_EQ(sequences->batches(), 7U);
  for (uint64_t position = 0; position < 14; ++position) {
    const Batch batch = batch_of(*sequences, position);
    EXPECT_THAT(batch.resets, Each(position % 7 == 0 ? 1 : 0)) << position;
    for (int64_t row = 0; row < 4; ++row)
      for (int64_t t = 0; t < 6; ++t) {
        const int64_t at = row * 50 + static_cast<int64_t>(position % 7) * 6 + t;
        EXPECT_EQ(batch.inputs[static_cast<size_t>(row * 6 + t)], at % 26);
        EXPECT_EQ(batch.targets[static_cast<size_t>(row * 6 + t)], (at + 1) % 26);
        EXPECT_LT(at + 1 - row * 50, split.training.length) << "a target is held out";
      }
  }
  const auto held_out = TokenSequences::create(corpus, split.validation, {4, 1}).take_or_throw();
  EXPECT_EQ(held_out->batches(), 1U);
  EXPECT_EQ(held_out->offset(0, 2), 2 * 50 + 45);
}

TEST(TokenSequences, OfARangeAreCutFromItAlone) {
  const testing::ScratchFolder folder;
  const auto corpus = testing::corpus_of(folder, letters(203));
  const SequenceSet set = sequences_of({"text", "validation", 100, 203}, 5);
  EXPECT_EQ(set.length, 20);
  const auto sequences = TokenSequences::create(corpus, set, {6, 3}).take_or_throw();
  EXPECT_EQ(sequences->batches(), 1U);
  EXPECT_EQ(sequences->offset(0, 4), 180);
  EXPECT_THAT(batch_of(*sequences, 5).resets,
              ElementsAre(1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0));
}

TEST(TokenSequences, SegmentsThatEndADocumentReset) {
  const testing::ScratchFolder folder;
  std::filesystem::create_directories(folder / "texts");
  folder.put("texts/a.txt", letters(14));  // and an end: 15 tokens
  folder.put("texts/b.txt", letters(8));   // 9
  const std::string path = folder / "texts";
  std::vector<char32_t> characters;
  for (char32_t c = U'a'; c <= U'z'; ++c) characters.push_back(c);
  const auto corpus = testing::corpus_at(folder, path, RecordedTokenizer(characters));
  ASSERT_EQ(corpus->size(), 24);
  const SequenceSet set = sequences_of({"text", "training", 0, 24}, 2);  // tokens 0.. and 12..
  const auto sequences = TokenSequences::create(corpus, set, {2, 2}).take_or_throw();
  EXPECT_THAT(batch_of(*sequences, 0).resets, ElementsAre(1, 0, 1, 1)) << "14 is the end of a";
  EXPECT_THAT(batch_of(*sequences, 1).resets, ElementsAre(0, 0, 0, 0));
}

TEST(TokenSequences, AreTheSameThroughALoaderThatWasSoughtThere) {
  const testing::ScratchFolder folder;
  const auto corpus = testing::corpus_of(folder, letters(203));
  const SequenceSet set = sequences_of({"text", "training", 0, 203}, 4);
  std::shared_ptr<const TokenSequences> sequences =
      TokenSequences::create(corpus, set, {6, 1}).take_or_throw();
  Loader loader(sequences, {.workers = 2, .prefetch = 3});
  loader.seek(11);
  const std::span<const void* const> read = loader.next();
  const Batch batch = batch_of(*sequences, 11);
  EXPECT_TRUE(
      std::equal(batch.inputs.begin(), batch.inputs.end(), static_cast<const int32_t*>(read[0])));
}

TEST(TokenSequences, RefuseSequencesThatAreTooShort) {
  const testing::ScratchFolder folder;
  const auto corpus = testing::corpus_of(folder, letters(203));
  const SequenceSet set = split_sequences(203, 4, 0.1, "novel.txt").validation;
  const auto sequences = TokenSequences::create(corpus, set, {3, 2});
  ASSERT_FALSE(sequences.ok());
  EXPECT_THAT(sequences.error(), HasSubstr("novel.txt: too short: the validation part of each of 4 "
                                           "sequences has 5 tokens, and a batch needs 7 of each"));
}

}  // namespace
}  // namespace fullbore
