#include "fullbore/data/word_piece_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::string kGolden = testing::source_folder() + "/tests/data/golden/word_piece";

std::shared_ptr<const Tokenizer> load(const std::string& path) {
  return load_tokenizer(path).take_or_throw();
}

std::vector<std::string> words(std::string_view text, const BertNormalization& normalization = {}) {
  std::vector<std::string> found;
  for_each_bert_word(text, normalization, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

WordPieceVocabulary some_vocabulary() {
  return {{"[PAD]", "[UNK]", "[CLS]", "un", "##aff", "##able", "##", "a"}, {}};
}

TEST(BertWords, AreNormalisedAndDivided) {
  EXPECT_THAT(words("Crème brûlée!"), ElementsAre("creme", "brulee", "!"));
  EXPECT_THAT(words("Crème", {.lowercase = false, .strip_accents = false}), ElementsAre("Crème"));
  EXPECT_THAT(words("Crème", {.lowercase = true, .strip_accents = false}), ElementsAre("crème"));
  EXPECT_THAT(words("a\u00A0b\tc\u200Bd"), ElementsAre("a", "b", "cd"));
  EXPECT_THAT(words("x狐狸y"), ElementsAre("x", "狐", "狸", "y"));
  EXPECT_THAT(words("각"), ElementsAre("\u1100\u1161\u11A8"));
  EXPECT_THAT(words(" \u0007 "), ElementsAre());
}

// What the Python package tokenizers says: tools/golden/word_piece_golden.py.
TEST(WordPieceTokenizer, HasTheIdsOfTokenizers) {
  const auto uncased = load(kGolden + "/tokenizer.json"), cased = load(kGolden + "/cased.json");
  const auto lines = load(kGolden + "/vocab.txt");
  std::ifstream file(kGolden + "/encodings.json");
  size_t texts = 0;
  for (const nlohmann::json& row : nlohmann::json::parse(file)) {
    const auto text = row[0].get<std::string>();
    EXPECT_EQ(uncased->encode(text).take_or_throw(), row[1].get<Ids>()) << text;
    EXPECT_EQ(lines->encode(text).take_or_throw(), row[1].get<Ids>()) << text;
    EXPECT_EQ(cased->encode(text).take_or_throw(), row[2].get<Ids>()) << text;
    ++texts;
  }
  EXPECT_GT(texts, 400U);
}

TEST(WordPieceTokenizer, TakesTheLongestPieceFirst) {
  const auto tokenizer = WordPieceTokenizer::create(some_vocabulary()).take_or_throw();
  EXPECT_THAT(tokenizer.encode("unaffable una [CLS]").take_or_throw(), ElementsAre(3, 4, 5, 1, 2));
  EXPECT_THAT(tokenizer.encode("[CLS]", SpecialTokens::kAsText).take_or_throw(),
              ElementsAre(1, 1, 1));
  EXPECT_EQ(tokenizer.decode(Ids{3, 4, 7}).take_or_throw(), " unaff a");
  EXPECT_EQ(tokenizer.id("##aff"), 4);
  EXPECT_EQ(tokenizer.id("aff"), -1);
}

TEST(WordPieceTokenizer, IsCutBetweenWords) {
  const auto tokenizer = load(kGolden + "/tokenizer.json");
  const std::string text = "Counted forty-two ships\nbefore the fog";
  const size_t cut = tokenizer->last_cut(text);
  Ids halves = tokenizer->encode(text.substr(0, cut)).take_or_throw();
  const Ids rest = tokenizer->encode(text.substr(cut)).take_or_throw();
  halves.insert(halves.end(), rest.begin(), rest.end());
  EXPECT_EQ(halves, tokenizer->encode(text).take_or_throw());
  EXPECT_EQ(tokenizer->last_cut("ships"), 0U);
}

TEST(WordPieceTokenizer, WritesItself) {
  const auto tokenizer = load(kGolden + "/cased.json");
  const auto again = parse_tokenizer(tokenizer->to_json(), "again").take_or_throw();
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(again->encode("Crème FOX").take_or_throw(),
            tokenizer->encode("Crème FOX").take_or_throw());
  EXPECT_NE(again->encode("The Fog").take_or_throw(),
            load(kGolden + "/tokenizer.json")->encode("The Fog").take_or_throw());
}

TEST(WordPieceTokenizer, SaysWhatIsWrong) {
  WordPieceVocabulary twice = some_vocabulary();
  twice.pieces.emplace_back("un");
  EXPECT_EQ(WordPieceTokenizer::create(twice).error(), "pieces 3 and 8 are both 'un'");
  WordPieceVocabulary none = some_vocabulary();
  none.unknown = "<unk>";
  EXPECT_THAT(WordPieceTokenizer::create(none).error(), HasSubstr("there is no piece '<unk>'"));
  EXPECT_THAT(parse_word_piece_vocabulary("[UNK]\n\na\n", {}, "vocab.txt").error(),
              HasSubstr("vocab.txt: not a tokenizer: piece 1 is empty"));

  const std::string json = read_file(kGolden + "/tokenizer.json").take_or_throw();
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = json;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return parse_tokenizer(text.replace(at, from.size(), to), "t.json");
  };
  EXPECT_THAT(changed(R"("clean_text": true)", R"("clean_text": false)").error(),
              HasSubstr("t.json: not a tokenizer: normalizer.clean_text is false, which is not"));
  EXPECT_THAT(
      changed(R"("max_input_chars_per_word": 100)", R"("max_input_chars_per_word": 9)").error(),
      HasSubstr("model.max_input_chars_per_word is 9"));
  EXPECT_THAT(changed(R"("[PAD]": 0)", R"("[PAD]": 70000)").error(),
              HasSubstr("model.vocab: id 0 was expected, 1 is next"));
  EXPECT_THAT(changed("BertPreTokenizer", "Whitespace").error(),
              HasSubstr("pre_tokenizer.type is \"Whitespace\""));
  EXPECT_THAT(changed(R"("content": "[PAD]")", R"("content": "<new>")").error(),
              HasSubstr("added_tokens[0] is no piece of model.vocab"));
}

TEST(WordPieceTokenizer, IsFoundInAFolder) {
  const testing::ScratchFolder folder;
  folder.put("vocab.txt", "[UNK]\nfox\n");
  EXPECT_EQ(load(folder.path())->encode("Fox ox").take_or_throw(), (Ids{1, 0}));
}

}  // namespace
}  // namespace fullbore
