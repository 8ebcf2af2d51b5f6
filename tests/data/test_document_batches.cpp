#include "fullbore/data/document_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/loader.h"
#include "tests/data/corpus.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kContext = 12;

/// JSON lines of 1 to 40 letters each.
class DocumentBatches : public ::testing::Test {
 protected:
  DocumentBatches() {
    PhiloxStream draws(4);
    std::string lines;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (uint64_t n = 1 + draws.below(40); n > 0; --n)
        text += static_cast<char>('a' + draws.below(26));
      lines += "{\"text\": \"" + text + "\"}\n";
    }
    const std::string path = folder_.put("lines.jsonl", lines);
    const TextSources sources = find_text(path).take_or_throw();
    corpus_ = testing::corpus_at(folder_, path,
                                 CharacterTokenizer(collect_characters(sources).take_or_throw()));
    range_ = {"lines.jsonl", "training", 0, corpus_->size()};
  }

  std::shared_ptr<const DatasetBatches> packed(const DocumentEpochs& epochs) const {
    return packed_batches(corpus_, range_, {4, kContext}, epochs).take_or_throw();
  }
  std::shared_ptr<const DatasetBatches> bucketed(const DocumentEpochs& epochs) const {
    return bucketed_batches(corpus_, range_, {{3, 6, kContext}, 48}, epochs).take_or_throw();
  }

  /// How often each pair of neighbours in a document is in the corpus.
  std::map<std::pair<int32_t, int32_t>, int> expected_pairs() const {
    std::map<std::pair<int32_t, int32_t>, int> pairs;
    for (int64_t d = 0; d < corpus_->documents(); ++d) {
      const TokenSpan span = corpus_->document(d);
      std::vector<int32_t> tokens(static_cast<size_t>(span.size()));
      corpus_->copy(span.begin, span.size(), tokens.data());
      for (size_t i = 0; i + 1 < tokens.size(); ++i) ++pairs[{tokens[i], tokens[i + 1]}];
    }
    return pairs;
  }
  /// The same of one epoch of batches: what predicts what.
  static std::map<std::pair<int32_t, int32_t>, int> pairs_of(const DatasetBatches& batches) {
    std::map<std::pair<int32_t, int32_t>, int> pairs;
    for (uint64_t p = 0; p < batches.batches(); ++p) {
      const std::vector<std::vector<int32_t>> fields = batch_of(batches, p);
      for (size_t i = 0; i < fields[0].size(); ++i)
        if (fields[1][i] >= 0) ++pairs[{fields[0][i], fields[1][i]}];
    }
    return pairs;
  }
  static std::vector<std::vector<int32_t>> batch_of(const BatchSource& source, uint64_t position) {
    std::vector<std::vector<int32_t>> fields;
    std::vector<void*> buffers;
    const std::vector<BatchField> shape = source.shapes()[source.shape_at(position)];
    for (const BatchField& field : shape) {
      fields.emplace_back(static_cast<size_t>(field.type.elements()), -7);
      buffers.push_back(fields.back().data());
    }
    source.fill(position, buffers);
    return fields;
  }
  static std::vector<std::vector<int32_t>> copy_of(std::span<const void* const> batch,
                                                   const BatchSource& source, uint64_t position) {
    std::vector<std::vector<int32_t>> fields;
    const std::vector<BatchField> shape = source.shapes()[source.shape_at(position)];
    for (const BatchField& field : shape) {
      const auto* const data = static_cast<const int32_t*>(batch[fields.size()]);
      fields.emplace_back(data, data + field.type.elements());
    }
    return fields;
  }

  ::fullbore::testing::ScratchFolder folder_;
  std::shared_ptr<const TokenCorpus> corpus_;
  TokenRange range_;
};

TEST_F(DocumentBatches, AnEpochPredictsEveryTokenButTheFirstOfADocumentOnce) {
  EXPECT_EQ(pairs_of(*bucketed({.count = 1})), expected_pairs());
  // Packed documents longer than a row lose nothing either: the last token of a piece has a target.
  EXPECT_EQ(pairs_of(*packed({.count = 1})), expected_pairs());
}

TEST_F(DocumentBatches, APartOfTheCorpusIsThatPartAlone) {
  const int64_t half = corpus_->size() / 2;
  TokenRange first = range_;
  TokenRange second = range_;
  first.end = second.begin = half;
  const auto count = [&](const TokenRange& range) {
    int sum = 0;
    for (const auto& [pair, times] : pairs_of(
             *bucketed_batches(corpus_, range, {{kContext}, 48}, {.count = 1}).take_or_throw()))
      sum += times;
    return sum;
  };
  const int64_t whole = corpus_->size() - corpus_->documents();
  const bool cut = corpus_->document_of(half) == corpus_->document_of(half - 1);
  EXPECT_EQ(count(first) + count(second), whole - (cut ? 1 : 0));
}

TEST_F(DocumentBatches, OneToEightWorkersMakeTheSameBatchesFromAnyPosition) {
  for (const bool pack : {true, false}) {
    const auto source = pack ? packed({.seed = 5}) : bucketed({.seed = 5});
    for (const int workers : {1, 2, 3, 4, 5, 6, 7, 8}) {
      Loader loader(source, {workers, 1 + workers % 3});
      const uint64_t begin = workers % 2 == 0 ? 0 : 37;  // half of them resumed
      loader.seek(begin);
      for (uint64_t position = begin; position < 90; ++position)
        ASSERT_EQ(copy_of(loader.next(), *source, position), batch_of(*source, position))
            << (pack ? "packed, " : "buckets, ") << workers << " workers, position " << position;
    }
  }
}

TEST_F(DocumentBatches, EpochsAndSeedsDifferInOrder) {
  for (const bool pack : {true, false}) {
    const auto source = [&](uint64_t seed) {
      return pack ? packed({.seed = seed}) : bucketed({.seed = seed});
    };
    EXPECT_NE(batch_of(*source(1), 0), batch_of(*source(2), 0));
    EXPECT_NE(batch_of(*source(1), 0), batch_of(*source(1), 1));
    EXPECT_EQ(batch_of(*source(1), 40), batch_of(*source(1), 40));
  }
}

TEST_F(DocumentBatches, BucketsHoldWhatFitsWithinTheBudget) {
  const auto source = bucketed({.seed = 3});
  ASSERT_EQ(source->shapes().size(), 3U);
  for (uint64_t position = 0; position < 100; ++position) {
    const std::vector<BatchField> fields = source->shapes()[source->shape_at(position)];
    const int64_t length = fields[0].type.shape[1];
    EXPECT_EQ(fields[0].type.shape[0], 48 / length);
    const auto batch = batch_of(*source, position);
    for (size_t row = 0; row < batch[2].size(); ++row) {
      const int32_t used = batch[2][row];
      if (used == 0) continue;
      EXPECT_LE(used, length);
      EXPECT_GT(used, length == 3 ? 0 : length == 6 ? 3 : 6);
      for (int64_t i = 0; i < length; ++i)
        EXPECT_EQ(batch[1][row * static_cast<size_t>(length) + static_cast<size_t>(i)] < 0,
                  i >= used);
    }
  }
}

TEST_F(DocumentBatches, TextsWithNothingToPredictAreRefused) {
  const std::string lines = folder_.put("short.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  const TextSources sources = find_text(lines).take_or_throw();
  const auto corpus = testing::corpus_at(
      folder_, lines, CharacterTokenizer(collect_characters(sources).take_or_throw()));
  const TokenRange range{"short.jsonl", "training", 0, 2};
  const std::string expected =
      "short.jsonl: no document of its training part has two tokens, and one prediction needs them";
  EXPECT_THAT(packed_batches(corpus, range, {4, kContext}, {}).error(), HasSubstr(expected));
  EXPECT_THAT(bucketed_batches(corpus, range, {{4}, 8}, {}).error(), HasSubstr(expected));
}

}  // namespace
}  // namespace fullbore
