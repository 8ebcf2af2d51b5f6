#include <gtest/gtest.h>

#include "fullbore/data/split_mix.h"
#include "workloads/latentwire/attribute_corpus.h"
#include "workloads/latentwire/corpus_tokenizer.h"

namespace fullbore::latentwire {
namespace {

// Check 1 of the specification.
TEST(AttributeCorpus, IsThatOfTheSpecificationToTheByte) {
  SplitMix64 draws(42);
  for (const uint64_t expected : {0xbdd732262feb6e95U, 0x28efe333b266f103U, 0x47526757130f9f52U})
    EXPECT_EQ(draws.bits(), expected);
  const AttributeRow first = attribute_row(42, 0);
  EXPECT_EQ(first.source(),
            "Context: The object is lamp. The owner is Allo. The city is Norgate. The color is "
            "orange. The day is Sunday. The price is 42.\nQuestion: What is the price?\n");
  EXPECT_EQ(first.answer(), "42");
  EXPECT_EQ(attribute_row(42, 1).question(), "Question: What is the owner?\n");
  EXPECT_EQ(attribute_row(42, 1).answer(), "Bolo");
  uint64_t hash = 0xcbf29ce484222325U, bytes = 0;  // FNV-1a of 64 bits
  for (uint64_t index = 0; index < 1000; ++index) {
    const AttributeRow row = attribute_row(42, index);
    const std::string text = row.source() + kAnswerAnchor + " " + row.answer() + "\n";
    for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
    bytes += text.size();
  }
  EXPECT_EQ(hash, 0xb531f08da8916b1cU);
  EXPECT_EQ(bytes, 140'457U);
}

TEST(AttributeCorpus, DocumentsAskTheRowsQuestionFirst) {
  const AttributeRow row = attribute_row(123, 5);
  const std::string document = attribute_document(123, 5);
  EXPECT_TRUE(document.starts_with(row.source() + "Answer: " + row.answer() + "\nQuestion: "));
  size_t answers = 0;
  for (size_t at = 0; (at = document.find("\nAnswer: ", at)) != std::string::npos; ++at) ++answers;
  EXPECT_EQ(answers, 3U);
  EXPECT_EQ(document.back(), '\n');
}

std::vector<int32_t> tokens_of(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, SpecialTokens::kAsText).take_or_throw();
}

TEST(CorpusTokenizer, HasTheVocabularyOfTheSpecification) {
  const CorpusTokenizer bytes, bpe = corpus_bpe();
  EXPECT_EQ(bytes.vocabulary_size(), 259);
  EXPECT_EQ(bpe.vocabulary_size(), 512);
  size_t source_bytes = 0, source_tokens = 0;
  for (uint64_t index = 0; index < 1000; ++index) {
    const std::string source = attribute_row(kAttributeTestKey, index).source();
    const std::vector<int32_t> tokens = tokens_of(bpe, source);
    EXPECT_EQ(bpe.decode(tokens).take_or_throw(), source);
    source_bytes += source.size();
    source_tokens += tokens.size();
  }
  EXPECT_NEAR(static_cast<double>(source_bytes) / 1000, 126, 2);
  EXPECT_NEAR(static_cast<double>(source_tokens) / 1000, 35, 1);
}

TEST(CorpusTokenizer, MergesWithinWordsAndTiesGoToSmallerIds) {
  // " ab" thrice, "ab" once, "ba" twice: (a, b) 4, (space, a) 3, (b, a) 2.
  const std::vector<BpeMerge> merges = train_corpus_merges({"ab ab ab ab\nba", "ba"}, 3);
  const int32_t a = 3 + 'a', b = 3 + 'b', space = 3 + ' ';
  ASSERT_EQ(merges.size(), 3U);
  EXPECT_EQ(merges[0], (BpeMerge{a, b, 259}));
  EXPECT_EQ(merges[1], (BpeMerge{space, 259, 260}));
  EXPECT_EQ(merges[2], (BpeMerge{b, a, 261}));
  EXPECT_EQ(train_corpus_merges({"cd", "ab"}, 1)[0], (BpeMerge{a, b, 259}));  // all pairs once
  const CorpusTokenizer tokenizer(merges);
  EXPECT_EQ(tokens_of(tokenizer, "ab ab\nba!"),
            (std::vector<int32_t>{259, 260, 3 + '\n', 261, 3 + '!'}));
  // Two spaces are white space and do not join the word.
  EXPECT_EQ(tokens_of(tokenizer, "  ab"), (std::vector<int32_t>{space, space, 259}));
}

TEST(CorpusTokenizer, IsReadBackFromItsJsonAndRefusesAnother) {
  const CorpusTokenizer bpe = corpus_bpe();
  const CorpusTokenizer again = CorpusTokenizer::from_json(bpe.to_json(), "t.json").take_or_throw();
  EXPECT_EQ(again.merges(), bpe.merges());
  const auto error = [](const std::string& json) {
    return CorpusTokenizer::from_json(json, "t.json").error();
  };
  EXPECT_EQ(error("{}"), "t.json: no tokenizer with \"format\": \"fullbore.latentwire_tokenizer\"");
  const std::string begin =
      R"({"format": "fullbore.latentwire_tokenizer", "version": 1, "merges": )";
  EXPECT_EQ(error(begin + "[[3, 259]]}"),
            "t.json: \"merges\" item 0: two tokens in [3, 259) were expected");
  EXPECT_EQ(error(begin + "[[3, 4], [3, 4]]}"), "t.json: \"merges\" item 1 stands twice");
  EXPECT_EQ(error(R"({"format": "fullbore.latentwire_tokenizer", "version": 2})"),
            "t.json: \"version\" of the tokenizer is not 1");
}

}  // namespace
}  // namespace fullbore::latentwire
