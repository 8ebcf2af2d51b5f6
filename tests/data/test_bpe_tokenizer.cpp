#include "fullbore/data/bpe_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/bpe_files.h"
#include "fullbore/data/bpe_trainer.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::string kGolden = testing::source_folder() + "/tests/data/golden";
const std::string kGpt2 = testing::shared_folder() + "/data/gpt2-tokenizer";

struct Encoding {
  std::string text;
  Ids small;
  Ids gpt2;
};

/// What the Python packages tokenizers and tiktoken both say: tools/golden/tokenizer_golden.py.
std::vector<Encoding> encodings() {
  std::ifstream file(kGolden + "/encodings.json");
  std::vector<Encoding> all;
  for (const nlohmann::json& row : nlohmann::json::parse(file))
    all.push_back({row[0].get<std::string>(), row[1].get<Ids>(), row[2].get<Ids>()});
  return all;
}

std::shared_ptr<const Tokenizer> load(const std::string& path) {
  return load_tokenizer(path).take_or_throw();
}

TEST(BpeTokenizer, EncodesAsTokenizersAndTiktokenDo) {
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGolden + "/tokenizer.json");
  EXPECT_EQ(tokenizer->vocabulary_size(), 601);
  EXPECT_EQ(tokenizer->end_of_document(), 600);
  const std::vector<Encoding> all = encodings();
  ASSERT_GT(all.size(), 250U);
  for (const Encoding& known : all) {
    ASSERT_EQ(tokenizer->encode(known.text).take_or_throw(), known.small) << known.text;
    ASSERT_EQ(tokenizer->decode(known.small).take_or_throw(), known.text);
  }
}

TEST(BpeTokenizer, EncodesAsGpt2) {
  if (!std::filesystem::exists(kGpt2)) GTEST_SKIP() << kGpt2 << " is absent";
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGpt2);
  EXPECT_EQ(tokenizer->vocabulary_size(), 50257);
  EXPECT_THAT(tokenizer->special_tokens(), ElementsAre(SpecialToken{"<|endoftext|>", 50256}));
  for (const Encoding& known : encodings()) {
    ASSERT_EQ(tokenizer->encode(known.text).take_or_throw(), known.gpt2) << known.text;
    ASSERT_EQ(tokenizer->decode(known.gpt2).take_or_throw(), known.text);
  }
}

TEST(BpeTokenizer, VocabularyAndMergesAreTheSameTokenizer) {
  const testing::ScratchFolder folder;
  for (const char* name : {"vocab.json", "merges.txt"})
    std::filesystem::copy(kGolden + "/" + name, folder / name);
  const std::shared_ptr<const Tokenizer> tokenizer = load(folder.path());
  EXPECT_EQ(tokenizer->vocabulary_size(), 600);
  for (const Encoding& known : encodings()) {
    if (known.text.find("<|endoftext|>") != std::string::npos) continue;  // an added token there
    ASSERT_EQ(tokenizer->encode(known.text).take_or_throw(), known.small) << known.text;
  }
}

TEST(BpeTokenizer, IsTheSameAfterWritingAndReading) {
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGolden + "/tokenizer.json");
  const std::shared_ptr<const Tokenizer> again =
      parse_tokenizer(tokenizer->to_json(), "again").take_or_throw();
  EXPECT_EQ(again->to_json(), tokenizer->to_json());
  EXPECT_EQ(again->hash(), tokenizer->hash());
  EXPECT_EQ(again->encode("it's <|endoftext|>").take_or_throw(),
            tokenizer->encode("it's <|endoftext|>").take_or_throw());
}

TEST(BpeTokenizer, SpecialTokensAreRecognisedOnlyWhereAsked) {
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGolden + "/tokenizer.json");
  const std::string text = "a<|endoftext|>b<|endoftext";
  const Ids special = tokenizer->encode(text).take_or_throw();
  EXPECT_EQ(std::count(special.begin(), special.end(), 600), 1);
  const Ids plain = tokenizer->encode(text, SpecialTokens::kAsText).take_or_throw();
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 600), 0);
  EXPECT_EQ(tokenizer->decode(plain).take_or_throw(), text);
  EXPECT_EQ(tokenizer->decode(special).take_or_throw(), text);
  EXPECT_EQ(tokenizer->decode(Ids{0, 601}).error(),
            "token 601 at position 1 is outside the vocabulary [0, 601)");
}

TEST(BpeTokenizer, WordsOfAnyLengthMergeAlike) {
  // Long words go through a heap, short ones through a list: here they meet, at every length.
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGolden + "/tokenizer.json");
  const auto& bpe = dynamic_cast<const BpeTokenizer&>(*tokenizer);
  const auto by_definition = [&](const std::string& word) {
    Ids tokens;
    for (const char byte : word)
      tokens.push_back(tokenizer->encode(std::string(1, byte)).value()[0]);
    const std::vector<BpeMerge>& merges = bpe.vocabulary().merges;
    for (;;) {
      size_t best = merges.size();
      size_t at = 0;
      for (size_t i = 0; i + 1 < tokens.size(); ++i)
        for (size_t rank = 0; rank < best; ++rank)
          if (merges[rank].left == tokens[i] && merges[rank].right == tokens[i + 1]) {
            best = rank;
            at = i;
          }
      if (best == merges.size()) return tokens;
      tokens[at] = merges[best].merged;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  };
  PhiloxStream random(3);
  for (size_t length = 1; length < 120; ++length) {
    std::string word;
    while (word.size() < length) word += "etaoinshr"[random.below(9)];
    EXPECT_EQ(tokenizer->encode(word).take_or_throw(), by_definition(word)) << word;
  }
  const std::string endless(1'000'000, 'e');
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(endless).take_or_throw()).take_or_throw(), endless);
}

TEST(BpeTokenizer, TheWordCacheChangesNothing) {
  // More different words than the cache holds, each met twice, from several threads.
  const std::shared_ptr<const Tokenizer> tokenizer = load(kGolden + "/tokenizer.json");
  std::string text;
  PhiloxStream random(8);
  for (int i = 0; i < 40'000; ++i) {
    text += ' ';
    for (uint64_t n = 1 + random.below(20); n > 0; --n)
      text += static_cast<char>('a' + static_cast<int>(random.below(26)));
  }
  const Ids once = tokenizer->encode(text).take_or_throw();
  EXPECT_EQ(tokenizer->decode(once).take_or_throw(), text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] { EXPECT_EQ(tokenizer->encode(text).take_or_throw(), once); });
  for (std::thread& thread : threads) thread.join();
  const std::shared_ptr<const Tokenizer> fresh = load(kGolden + "/tokenizer.json");
  Ids word_by_word;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at + 1), text.size());
    const Ids word = fresh->encode(text.substr(at, end - at)).take_or_throw();
    word_by_word.insert(word_by_word.end(), word.begin(), word.end());
    at = end;
  }
  EXPECT_EQ(word_by_word, once);
}

TEST(BpeTokenizer, RefusesWhatItIsNot) {
  const std::string good = read_file(kGolden + "/tokenizer.json").value();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return json.replace(at, from.size(), to);
  };
  const std::string kPreTokenizer =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  const auto split_by = [](const std::string& expression,
                           const std::string& behavior = R"("Isolated")") {
    return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" +
           expression + R"("},"behavior":)" + behavior +
           R"(,"invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})";
  };
  const auto template_of = [](const std::string& single) {
    return R"("post_processor":{"type":"TemplateProcessing","single":[)" + single + "]}";
  };
  const struct {
    std::string json;
    const char* reason;
  } cases[] = {
      {"", "an object was expected"},
      {"[]", "an object was expected"},
      {"{}", "neither \"format\" nor \"model\""},
      {R"({"format": "fullbore.sentence_tokenizer"})",
       "\"format\" is \"fullbore.sentence_tokenizer\""},
      {R"({"format": "fullbore.byte_tokenizer", "version": 7})", "version 7 is not known; 1 is"},
      {with(R"("version":"1.0")", R"("version":"2.0")"), "version is \"2.0\", which is not"},
      {with(R"("normalizer":null)", R"("normalizer":{"type":"NFKC"})"),
       "normalizer.type is \"NFKC\", which is not supported; \"NFC\" was expected"},
      {with(R"("normalizer":null)", R"("normalizer":7)"), "normalizer is not an object"},
      {with(R"("truncation":null)", R"("truncation":{})"), "truncation is {}"},
      {with(R"("add_prefix_space":false)", R"("add_prefix_space":true)"),
       "pre_tokenizer.add_prefix_space is true"},
      {with(R"("type":"ByteLevel")", R"("type":"Whitespace")"), "pre_tokenizer.type is"},
      {with(R"("use_regex":true)", R"("use_regex":false)"), "pre_tokenizer.use_regex is false"},
      {with(R"("type":"BPE")", R"("type":"Unigram")"), "model.type is \"Unigram\""},
      {with(R"("dropout":null)", R"("dropout":0.1)"), "model.dropout is 0.1"},
      {with(R"("byte_fallback":false)", R"("byte_fallback":true)"), "model.byte_fallback is true"},
      {with(R"("ignore_merges":false)", R"("ignore_merges":7)"), "model.ignore_merges is 7"},
      {with(R"("lstrip":false)", R"("lstrip":7)"), "added_tokens[0].lstrip is 7"},
      {with(R"("single_word":false)", R"("single_word":true)"),
       "added_tokens[0].single_word is true"},
      {with(kPreTokenizer, R"({"type":"Sequence","pretokenizers":[]})"),
       "pre_tokenizer is not supported; ByteLevel was expected"},
      {with(kPreTokenizer, split_by("[a-z]+")),
       R"(pre_tokenizer.pretokenizers[0].pattern is {"Regex":"[a-z]+"}, which is not supported)"},
      {with(kPreTokenizer, split_by("x", R"("Removed")")),
       R"(pre_tokenizer.pretokenizers[0].behavior is "Removed")"},
      {with(R"("post_processor":null)", R"("post_processor":{"type":"RobertaProcessing"})"),
       "post_processor.type is \"RobertaProcessing\""},
      {with(R"("post_processor":null)",
            template_of(R"({"Sequence":{"id":"A"}},{"SpecialToken":{"id":"x"}})")),
       "post_processor.single is not supported; at most one special token"},
      {with(R"("post_processor":null)",
            template_of(R"({"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}})")),
       "the token 'x', which the post-processor puts before a text, is no special token"},
      {with(R"("!":0)", R"("!":1)"), "have the same id 1"},
      {with(R"("!":0)", R"("!":99999)"), "ids are dense"},
      {with(R"("!":0)", R"("!":-1)"), "ids are dense"},
      {with(R"("!":0)", R"("!":"zero")"), "vocabulary: byte"},
      {with(R"("!":0)", R"("!!!!":0)"), "the byte 0x21 has no token"},
      {with(R"("!":0)", R"("\u4e2d":0)"), "is not written in the characters of byte-level BPE"},
      {with(R"("merges":[)", R"("merges":[["zq","!"],)"), "merge 0 of 'zq' and '!': the first is"},
      {with(R"("merges":[)", R"("merges":["!",)"), "merge 0 is '!'; two tokens were expected"},
      {with(R"("merges":[)", R"("merges":[7,)"), "merge 0 is no pair of texts"},
      {with(R"("merges":[)", R"("merges":[["!","!","!"],)"), "merge 0 is no pair of texts"},
      {with(R"("id":600)", R"("id":0)"), "have the same id 0"},
      {good.substr(0, good.size() / 2), "not a tokenizer: byte"},
  };
  for (const auto& [json, reason] : cases) {
    const Result<std::shared_ptr<const Tokenizer>> result = parse_tokenizer(json, "t.json");
    ASSERT_FALSE(result.ok()) << reason;
    EXPECT_THAT(result.error(), ::testing::StartsWith("t.json: not a tokenizer: "));
    EXPECT_THAT(result.error(), HasSubstr(reason));
  }
  const std::string deep = R"({"model": )" + std::string(200'000, '[');
  EXPECT_THAT(parse_tokenizer(deep, "deep").error(), HasSubstr("nested deeper than 512"));
}

TEST(BpeTokenizer, FoldersWithoutATokenizerAreNamed) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(load_tokenizer(folder.path()).error(), HasSubstr("holds no tokenizer"));
  folder.put("vocab.json", "{}");
  EXPECT_THAT(load_tokenizer(folder.path()).error(), HasSubstr("merges.txt"));
  folder.put("merges.txt", "#version: 0.2\na b\nc\n");
  EXPECT_THAT(load_tokenizer(folder.path()).error(),
              HasSubstr("merges.txt:3: 'c'; two tokens and a space were expected"));
  EXPECT_THAT(load_tokenizer(folder / "none.json").error(), HasSubstr("No such file"));
}

TEST(BpeTrainer, LearnsWhatTokenizersLearns) {
  const TextSources sources = find_text(kGolden + "/corpus.txt").take_or_throw();
  const std::shared_ptr<const Tokenizer> expected = load(kGolden + "/tokenizer.json");
  for (const int workers : {1, 3}) {
    BpeTrainingOptions options;
    options.vocabulary_size = 601;
    options.workers = workers;
    const auto trained = train_bpe(sources, options).take_or_throw();
    EXPECT_EQ(trained->to_json(), expected->to_json());
  }
}

TEST(BpeTrainer, EndsWhenNothingIsLeftToMerge) {
  const testing::ScratchFolder folder;
  const TextSources sources = find_text(folder.put("text.txt", "ab ab aaaa\n")).take_or_throw();
  BpeTrainingOptions options;
  options.special_tokens = {"<pad>", "</s>"};
  const auto trained = train_bpe(sources, options).take_or_throw();
  // " ab", "ab", " aaaa" and what leads there, then the special tokens.
  EXPECT_LT(trained->vocabulary_size(), 256 + 10);
  EXPECT_EQ(trained->encode("ab ab aaaa").take_or_throw().size(), 3U);
  EXPECT_EQ(trained->end_of_document(), trained->vocabulary_size() - 1);
  EXPECT_EQ(trained->decode(trained->encode("x</s>\u4E2D").take_or_throw()).value(), "x</s>\u4E2D");
}

TEST(BpeTrainer, RefusesAVocabularyWithoutRoom) {
  const TextSources sources = find_text(kGolden + "/corpus.txt").take_or_throw();
  BpeTrainingOptions options;
  options.vocabulary_size = 256;
  EXPECT_THAT(train_bpe(sources, options).error(), HasSubstr("at least 257 are needed"));
  options.vocabulary_size = 300;
  options.special_tokens = {"<s>", "<s>"};
  EXPECT_FALSE(train_bpe(sources, options).ok());
  options.special_tokens = {};
  options.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(train_bpe(sources, options).error(), "stopped");
}

}  // namespace
}  // namespace fullbore
