#include "fullbore/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/token_windows.h"
#include "fullbore/data/tokenize.h"
#include "fullbore/monitor/process.h"
#include "tests/data/corpus.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kGolden = testing::source_folder() + "/tests/data/golden";

class TokenShardTest : public ::testing::Test {
 protected:
  /// A shard of bytes, with documents that end at `ends` and one file.
  std::string write(const std::vector<int32_t>& tokens, const std::vector<uint64_t>& ends = {}) {
    TokenShardWriter writer =
        TokenShardWriter::create(folder_ / "s.tokens", {1, 2, 3}, ByteTokenizer()).take_or_throw();
    writer.append(tokens, ends, tokens.size()).take_or_throw();
    writer.commit().take_or_throw();
    return folder_ / "s.tokens";
  }
  static std::vector<int32_t> all(const TokenCorpus& corpus) {
    std::vector<int32_t> ids(static_cast<size_t>(corpus.size()));
    corpus.copy(0, corpus.size(), ids.data());
    return ids;
  }
  static std::vector<int64_t> document_begins(const TokenCorpus& corpus) {
    std::vector<int64_t> begins;
    for (int64_t i = 0; i < corpus.documents(); ++i) begins.push_back(corpus.document(i).begin);
    return begins;
  }
  /// Three files: a document, two JSON lines, a document.
  TextSources sources() {
    std::filesystem::create_directories(folder_ / "in");
    folder_.put("in/a.txt", "it's one");
    folder_.put("in/b.jsonl", "{\"text\": \"two\"}\n{\"text\": \"three\"}\n");
    folder_.put("in/c.txt", "four ");
    return find_text(folder_ / "in").take_or_throw();
  }
  testing::ScratchFolder folder_;
};

TEST_F(TokenShardTest, HoldsTokensBoundariesAndTokenizer) {
  const TokenShard shard = TokenShard::open(write({5, 6, 7, 255}, {1, 1, 3})).take_or_throw();
  EXPECT_EQ(shard.size(), 4);
  EXPECT_EQ(shard.token_bytes(), 2);
  EXPECT_THAT(shard.document_ends(), ElementsAre(1, 1, 3, 4));
  EXPECT_THAT(shard.file_ends(), ElementsAre(4));
  EXPECT_EQ(shard.key(), (TokenKey{1, 2, 3}));
  EXPECT_EQ(shard.tokenizer_json(), ByteTokenizer().to_json());
  EXPECT_TRUE(is_token_shard(shard.path()));
  EXPECT_FALSE(is_token_shard(folder_.put("t", "FBTOKEN")));
}

TEST_F(TokenShardTest, IsCheckedWithoutItsPagesStayingInMemory) {
  const std::string path = write(std::vector<int32_t>(16'000'000, 5));
  const int64_t before = resident_bytes();
  const TokenShard shard = TokenShard::open(path).take_or_throw();
  EXPECT_LT(resident_bytes() - before, 12'000'000) << "of a file of 32 MB";
  int32_t last = 0;
  shard.copy(shard.size() - 1, 1, &last);
  EXPECT_EQ(last, 5);
}

TEST_F(TokenShardTest, DamageIsNamedByItsBytes) {
  std::vector<int32_t> tokens(1'500'000);
  PhiloxStream random(2);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.below(256));
  const std::string path = write(tokens);
  const std::string whole = read_file(path).value();
  const auto error_with_flip_at = [&](size_t at) {
    std::string bytes = whole;
    bytes[at] ^= 4;
    return TokenShard::open(folder_.put("damaged", bytes)).error();
  };
  EXPECT_THAT(error_with_flip_at(20), HasSubstr("the header, bytes 0-63, is damaged"));
  EXPECT_THAT(error_with_flip_at(64), HasSubstr("the checksum of bytes 64-1048639 differs"));
  EXPECT_THAT(error_with_flip_at(2'000'000), HasSubstr("of bytes 1048640-2097215 differs"));
  EXPECT_THAT(error_with_flip_at(whole.size() - 70), HasSubstr("the block hashes, bytes"));
  EXPECT_THAT(error_with_flip_at(whole.size() - 1), HasSubstr("is damaged or cut off"));
  EXPECT_THAT(TokenShard::open(folder_.put("short", whole.substr(0, 127))).error(),
              HasSubstr("127 bytes, at least 128 were expected"));
  std::string inserted = whole;
  inserted.insert(500, "12345678");
  EXPECT_THAT(TokenShard::open(folder_.put("long", inserted)).error(),
              HasSubstr("bytes long, its footer asks for " + std::to_string(whole.size())));
  std::string older = whole;
  older[8] = 1;
  EXPECT_THAT(TokenShard::open(folder_.put("older", older)).error(),
              HasSubstr("token shard of version 1; 2 is known"));
}

TEST_F(TokenShardTest, ATokenOutsideTheVocabularyIsSeenThoughTheChecksumsHold) {
  EXPECT_THAT(TokenShard::open(write({0, 256, 1})).error(),
              HasSubstr("token 256 is outside the vocabulary of 256"));
}

TEST_F(TokenShardTest, SeveralShardsAreOneCorpus) {
  const TextSources text = sources();
  const ContentHash content = hash_text_sources(text).take_or_throw();
  const auto tokenizer = load_tokenizer(kGolden + "/tokenizer.json").take_or_throw();
  const auto whole =
      TokenCorpus::open(
          tokenize_text(text, content, *tokenizer, folder_ / "w.tokens").take_or_throw())
          .take_or_throw();
  EXPECT_EQ(tokenizer->decode(all(whole)).take_or_throw(),
            "it's one<|endoftext|>two<|endoftext|>three<|endoftext|>four <|endoftext|>");
  EXPECT_EQ(whole.documents(), 4);
  EXPECT_EQ(whole.files(), 3);
  EXPECT_THAT((std::vector{whole.file_begin(0), whole.file_begin(1), whole.file_begin(2),
                           whole.file_begin(3)}),
              ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(whole.text_bytes(), 8U + 3 + 5 + 5);
  for (int64_t shard_tokens = 1; shard_tokens <= whole.size(); ++shard_tokens) {
    TokenizeOptions options;
    options.shard_tokens = shard_tokens;
    const std::vector<std::string> paths =
        tokenize_text(text, content, *tokenizer, folder_ / "p.tokens", options).take_or_throw();
    EXPECT_EQ(paths.front(), folder_ / "p-00000.tokens");
    const TokenCorpus parts = TokenCorpus::open(paths).take_or_throw();
    EXPECT_EQ(paths.size() > 1, shard_tokens <= whole.document(2).end) << shard_tokens;
    EXPECT_EQ(all(parts), all(whole)) << shard_tokens;
    EXPECT_EQ(document_begins(parts), document_begins(whole));
    EXPECT_EQ(parts.text_bytes(), whole.text_bytes());
    for (int64_t token = 0; token < whole.size(); ++token) {
      const TokenSpan document = parts.document(parts.document_of(token));
      EXPECT_TRUE(document.begin <= token && token < document.end);
    }
  }
}

TEST_F(TokenShardTest, WorkersChangeNothing) {
  std::string lines;
  PhiloxStream random(4);
  while (lines.size() < 3'000'000) {
    lines += "{\"text\": \"";
    for (uint64_t n = random.below(400); n > 0; --n) lines += "etaoin shrdlu "[random.below(14)];
    lines += "\"}\n";
  }
  const TextSources text = find_text(folder_.put("t.jsonl", lines)).take_or_throw();
  const ContentHash content = hash_text_sources(text).take_or_throw();
  const auto tokenizer = load_tokenizer(kGolden + "/tokenizer.json").take_or_throw();
  std::string first;
  for (const int workers : {1, 2, 5}) {
    TokenizeOptions options;
    options.workers = workers;
    const std::string path =
        tokenize_text(text, content, *tokenizer, folder_ / "w.tokens", options).take_or_throw()[0];
    const std::string bytes = read_file(path).take_or_throw();
    if (workers == 1) first = bytes;
    EXPECT_TRUE(bytes == first) << workers << " workers";
  }
  TokenizeOptions stopped;
  stopped.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(tokenize_text(text, content, *tokenizer, folder_ / "s.tokens", stopped).error(),
            "stopped");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "s.tokens"));
}

TEST_F(TokenShardTest, WhatDoesNotGoTogetherIsRefused) {
  const TextSources text = sources();
  const ContentHash content = hash_text_sources(text).take_or_throw();
  const auto bpe = load_tokenizer(kGolden + "/tokenizer.json").take_or_throw();
  const std::string a = tokenize_text(text, content, *bpe, folder_ / "a").take_or_throw()[0];
  const std::string b =
      tokenize_text(text, content, ByteTokenizer(), folder_ / "b").take_or_throw()[0];
  EXPECT_THAT(TokenCorpus::open({a, b}).error(), HasSubstr("were made by different tokenizers"));
  EXPECT_THAT(TokenCorpus::open({a, a}).error(), HasSubstr("is named twice"));
  EXPECT_THAT(TokenCorpus::open({}).error(), HasSubstr("no token shard"));
  const TextSources nothing =
      find_text(folder_.put("n.jsonl", "{\"text\": \"\"}\n")).take_or_throw();
  EXPECT_THAT(
      tokenize_text(nothing, hash_text_sources(nothing).take_or_throw(), *bpe, folder_ / "n")
          .error(),
      HasSubstr("there is no text in any document"));
}

TEST_F(TokenShardTest, SplitsDivideNoDocumentAndNoFile) {
  const auto corpus = testing::corpus_at(folder_, folder_ / "in",
                                         (sources(), ByteTokenizer()));  // 8 | 3, 5 | 5 tokens
  const auto boundary = [&](double fraction, SplitBy by) {
    const TokenSplit split = split_corpus(*corpus, fraction, by, "t").take_or_throw();
    EXPECT_EQ(split.training.end, split.validation.begin);
    EXPECT_EQ(split.validation.end, 21);
    return split.training.end;
  };
  EXPECT_EQ(boundary(0.1, SplitBy::kToken), 18);
  EXPECT_EQ(boundary(0.1, SplitBy::kDocument), 16);
  EXPECT_EQ(boundary(0.3, SplitBy::kDocument), 11);
  EXPECT_EQ(boundary(0.3, SplitBy::kFile), 8);
  EXPECT_EQ(boundary(0.2, SplitBy::kFile), 16);
  EXPECT_EQ(boundary(0.99, SplitBy::kDocument), 8) << "the training part is not empty";
  EXPECT_EQ(boundary(0, SplitBy::kFile), 21);
  const auto one = testing::corpus_of(folder_, "one document");
  EXPECT_EQ(split_corpus(*one, 0.1, SplitBy::kFile, "t.txt").error(),
            "t.txt: all of it is one file, which data.split must not divide");
  EXPECT_FALSE(split_corpus(*one, 0.1, SplitBy::kDocument, "t.txt").ok());
}

}  // namespace
}  // namespace fullbore
