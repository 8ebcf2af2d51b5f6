#include "workloads/energy_flow/text_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/error.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/word_piece_tokenizer.h"
#include "tests/support/evaluate.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(TextForm, RowsEndInPaddingAndTextsComeBack) {
  const TextForm form(corpus_tokenizer(), 8, "x");
  EXPECT_EQ(form.vocabulary(), 48);
  std::vector<int32_t> row(8);
  EXPECT_FALSE(form.fill("no cat sings above the river", row).take_or_throw());
  EXPECT_THAT(std::vector<int32_t>(row.begin() + 6, row.end()), ElementsAre(0, 0));
  EXPECT_EQ(form.text(row), "no cat sings above the river");
  row[2] = form.end();
  EXPECT_EQ(form.text(row), "no cat");
  for (uint64_t i = 0; i < 50; ++i) {
    const SentencePair pair = sentence_pair(42, i);
    ASSERT_FALSE(form.fill(pair.premise, row).take_or_throw());
    EXPECT_EQ(form.text(row), pair.premise);
  }
}

TEST(TextForm, WhatIsTooLongIsCutAndWhatIsEmptyIsNot) {
  const TextForm form(corpus_tokenizer(), 2, "x");
  std::vector<int32_t> row(2);
  EXPECT_TRUE(form.fill("a red cat", row).take_or_throw());
  EXPECT_EQ(form.text(row), "a red");
  EXPECT_FALSE(form.fill("", row).take_or_throw());
  EXPECT_THAT(row, ElementsAre(1, 0));  // "empty", which no sentence of the corpus has
  EXPECT_FALSE(form.fill("<eos>", row).take_or_throw());
  EXPECT_EQ(row[0], 1);  // a text, not the end of one
  EXPECT_THAT(form.fill("\xff", row).error(), HasSubstr("not UTF-8"));
}

TEST(TextForm, KnowsTheTokensOfBertAndRefusesWhatHasNone) {
  const auto pieces = std::make_shared<const WordPieceTokenizer>(
      WordPieceTokenizer::create({{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "##s"}, {}, "[UNK]"})
          .take_or_throw());
  const TextForm form(pieces, 4, "x");
  EXPECT_EQ(form.begin(), 2);
  EXPECT_EQ(form.end(), 3);
  EXPECT_THAT(form.never_written(), ElementsAre(0, 1, 2));
  EXPECT_EQ(form.text(std::vector<int32_t>{4, 5, 3, 4}), "cats");
  EXPECT_THAT(
      usage_error([] { TextForm(std::make_shared<const ByteTokenizer>(), 4, "bytes.json"); }),
      HasSubstr("bytes.json: the text bridge needs a token for padding: <pad> or [PAD]"));
}

}  // namespace
}  // namespace fullbore::energy_flow
