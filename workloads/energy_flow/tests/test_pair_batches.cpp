#include "workloads/energy_flow/pair_batches.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "fullbore/base/error.h"
#include "tests/support/scratch_folder.h"
#include "workloads/energy_flow/embedding_file.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 16, kBatch = 4;

struct Filled {
  std::vector<float> input, target;
  float settings[4] = {};
};

Filled filled(const PairBatches& batches, uint64_t position) {
  Filled batch{std::vector<float>(kBatch * kWidth), std::vector<float>(kBatch * kWidth)};
  void* buffers[] = {batch.input.data(), batch.target.data(), &batch.settings[0],
                     &batch.settings[1], &batch.settings[2],  &batch.settings[3]};
  batches.fill(position, buffers);
  return batch;
}

std::vector<float> row(const std::vector<float>& rows, int64_t index) {
  return {rows.begin() + index * kWidth, rows.begin() + (index + 1) * kWidth};
}

std::shared_ptr<const EmbeddingPairs> corpus(int64_t pairs) {
  return std::make_shared<const EmbeddingPairs>(EmbeddingPairs::of_corpus(42, 0, pairs, kWidth));
}

StepSettings settings(uint64_t position) { return {static_cast<double>(position), 2, 3, 4}; }

TEST(PairBatches, GoThroughAllPairsInEveryEpochInAnotherOrder) {
  const auto pairs = corpus(10);
  const PairBatches batches(pairs, nullptr, 0, 10, kBatch, uint64_t{7}, settings);
  std::vector<std::set<std::vector<float>>> epochs(2);
  std::vector<std::vector<float>> first;
  for (uint64_t position = 0; position < 5; ++position) {
    const Filled batch = filled(batches, position);
    for (int64_t i = 0; i < kBatch; ++i) {
      const uint64_t example = position * kBatch + static_cast<uint64_t>(i);
      epochs[example / 10].insert(row(batch.input, i));
      first.push_back(row(batch.input, i));
    }
    EXPECT_EQ(batch.settings[0], static_cast<float>(position));
    EXPECT_EQ(batch.settings[3], 4);
  }
  EXPECT_EQ(epochs[0].size(), 10U);
  EXPECT_EQ(epochs[1].size(), 10U);
  EXPECT_NE(std::vector(first.begin(), first.begin() + 10),
            std::vector(first.begin() + 10, first.end()));
  EXPECT_EQ(filled(batches, 3).input, filled(batches, 3).input);
}

TEST(PairBatches, InOrderTheyAreTheCorpus) {
  const PairBatches batches(corpus(12), nullptr, 4, 8, kBatch, std::nullopt, settings);
  const Filled batch = filled(batches, 1);
  for (int64_t i = 0; i < kBatch; ++i) {
    const SentencePair pair = sentence_pair(42, static_cast<uint64_t>(8 + i));
    EXPECT_EQ(row(batch.input, i), sentence_embedding(pair.premise, kWidth));
    EXPECT_EQ(row(batch.target, i), sentence_embedding(pair.hypothesis, kWidth));
  }
  EXPECT_EQ(filled(batches, 3).input, batch.input) << "from the beginning again";
}

class PairFiles : public ::testing::Test {
 protected:
  std::string write(int64_t records) {
    std::string path = folder_ / "pairs.efb";
    EmbeddingWriter writer =
        EmbeddingWriter::create(path, EmbeddingFormat::efb2, {.width = kWidth}, records)
            .take_or_throw();
    for (int64_t i = 0; i < records; ++i) {
      EmbeddingRecord record;
      record.vector = sentence_embedding("a red cat", kWidth);
      record.vector[0] = static_cast<float>(i + 1);
      EXPECT_TRUE(writer.write(record).ok());
    }
    EXPECT_TRUE(writer.commit().ok());
    return path;
  }
  std::string refusal(const std::string& path, int64_t width) {
    try {
      EmbeddingPairs::of_file(path, width, console_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  }

  testing::ScratchFolder folder_;
  Console console_{open("/dev/null", O_WRONLY)};
};

TEST_F(PairFiles, AreReadTwoByTwo) {
  const EmbeddingPairs pairs = EmbeddingPairs::of_file(write(6), kWidth, console_);
  ASSERT_EQ(pairs.size(), 3);
  EXPECT_EQ(pairs.input(2)[0], 5);
  EXPECT_EQ(pairs.target(2)[0], 6);
}

TEST_F(PairFiles, WhatIsNoPairIsNamed) {
  EXPECT_THAT(refusal(write(5), kWidth),
              HasSubstr("pairs.efb: 5 records: an input and its target"));
  EXPECT_THAT(refusal(write(4), kWidth + 1), HasSubstr("pairs.efb"));
  EXPECT_THAT(refusal(write(4), kWidth + 1), HasSubstr("17"));
  EXPECT_THAT(refusal(folder_ / "none.efb", kWidth), HasSubstr("none.efb"));
}

}  // namespace
}  // namespace fullbore::energy_flow
