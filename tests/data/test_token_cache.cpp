#include "fullbore/data/token_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>

#include "fullbore/base/files.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/document_stream.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class TokenCache : public ::testing::Test {
 protected:
  Result<CachedTokens> cached(const std::string& text, FileSystem& files = system_files()) {
    sources_ = find_text(folder_.put("text.txt", text)).take_or_throw();
    content_ = hash_text_sources(sources_).take_or_throw();
    characters_ = collect_characters(sources_).take_or_throw();
    return cached_tokens(sources_, content_, CharacterTokenizer(characters_), cache_, {}, files);
  }
  static std::vector<int32_t> all(const TokenShard& tokens) {
    std::vector<int32_t> ids(static_cast<size_t>(tokens.size()));
    tokens.copy(0, tokens.size(), ids.data());
    return ids;
  }
  std::vector<int32_t> expected(const std::string& text) {
    return CharacterTokenizer(characters_).encode(text).take_or_throw();
  }
  int cache_files() {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(cache_), {}));
  }

  testing::ScratchFolder folder_;
  const std::string cache_ = folder_ / "cache/below";
  const std::string text_ = "hello, w\u00F6rld\nbye\n";
  TextSources sources_;
  ContentHash content_;
  std::vector<char32_t> characters_;
};

TEST_F(TokenCache, IsMadeOnceAndThenFound) {
  const CachedTokens made = cached(text_).take_or_throw();
  EXPECT_EQ(made.note, "made");
  EXPECT_EQ(all(made.tokens), expected(text_));
  EXPECT_EQ(made.tokens.vocabulary_size(), static_cast<int64_t>(characters_.size()));
  const CachedTokens found = cached(text_).take_or_throw();
  EXPECT_EQ(found.note, "");
  EXPECT_EQ(found.tokens.path(), made.tokens.path());
  EXPECT_EQ(all(found.tokens), expected(text_));
  EXPECT_EQ(cache_files(), 1);
}

TEST_F(TokenCache, AnotherTextOrTokenizerHasAFileOfItsOwn) {
  const std::string first = cached(text_).take_or_throw().tokens.path();
  std::string edited = text_;
  edited[0] = 'b';  // same length, same characters
  const CachedTokens second = cached(edited).take_or_throw();
  EXPECT_NE(second.tokens.path(), first);
  EXPECT_EQ(all(second.tokens), expected(edited));
  std::vector<char32_t> more = characters_;
  more.insert(more.begin(), U'\t');
  const CachedTokens third =
      cached_tokens(sources_, content_, CharacterTokenizer(more), cache_).take_or_throw();
  EXPECT_EQ(third.note, "made");
  EXPECT_EQ(all(third.tokens)[0], expected(edited)[0] + 1);
  EXPECT_EQ(cache_files(), 3);
}

TEST_F(TokenCache, LargeVocabulariesTakeFourBytes) {
  std::vector<char32_t> vocabulary;
  for (char32_t c = 0x10000; c <= 0x20000; ++c) vocabulary.push_back(c);
  const std::string text = "\U00020000\U00010000\U00010001";
  const TextSources sources = find_text(folder_.put("text.txt", text)).take_or_throw();
  const CachedTokens made = cached_tokens(sources, hash_text_sources(sources).take_or_throw(),
                                          CharacterTokenizer(vocabulary), cache_)
                                .take_or_throw();
  EXPECT_EQ(all(made.tokens), (std::vector<int32_t>{65536, 0, 1}));
  EXPECT_EQ(made.tokens.token_bytes(), 4);
}

TEST_F(TokenCache, TextsLongerThanAPieceAreTheSame) {
  std::string text;
  while (text.size() < 2 * TextReader::kPieceBytes + 100) text += "\u00E9\u4E2Dab\n";
  const CachedTokens made = cached(text).take_or_throw();
  EXPECT_EQ(all(made.tokens), expected(text));
}

TEST_F(TokenCache, TruncationAtEveryOffsetIsSeenAndMended) {
  const std::string path = cached(text_).take_or_throw().tokens.path();
  const std::string whole = read_file(path).value();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    ASSERT_FALSE(TokenShard::open(folder_.put("cut", cut)).ok()) << size;
    if (size % 16 != 0) continue;  // mending waits for the disk
    folder_.put("cache/below/" + std::filesystem::path(path).filename().string(), cut);
    const CachedTokens mended = cached(text_).take_or_throw();
    EXPECT_THAT(mended.note, HasSubstr("made again: " + path)) << size;
    EXPECT_EQ(all(mended.tokens), expected(text_)) << size;
    EXPECT_EQ(read_file(path).value(), whole);
  }
  ASSERT_TRUE(write_file_atomically(path, whole + "x").ok());
  EXPECT_THAT(cached(text_).take_or_throw().note, HasSubstr("is damaged or cut off"));
}

TEST_F(TokenCache, EveryFlippedBitIsSeen) {
  const std::string path = cached(text_).take_or_throw().tokens.path();
  const std::string whole = read_file(path).value();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] ^= static_cast<char>(1U << bit % 8);
    folder_.put("flipped", flipped);
    const Result<TokenShard> opened = TokenShard::open(folder_ / "flipped");
    ASSERT_FALSE(opened.ok()) << "bit " << bit;
    EXPECT_THAT(opened.error(), HasSubstr(folder_ / "flipped"));
  }
}

TEST_F(TokenCache, ForeignFilesInItsPlaceAreReplaced) {
  const std::string path = cached(text_).take_or_throw().tokens.path();
  const std::string other = read_file(cached("another text").take_or_throw().tokens.path()).value();
  for (const std::string& foreign : {std::string(500, 'x'), std::string(), other}) {
    ASSERT_TRUE(write_file_atomically(path, foreign).ok());
    const CachedTokens mended = cached(text_).take_or_throw();
    EXPECT_THAT(mended.note, HasSubstr("made again"));
    EXPECT_EQ(all(mended.tokens), expected(text_));
  }
}

TEST_F(TokenCache, AnUnknownCharacterIsNamedWithItsLine) {
  const std::string path = folder_.put("text.txt", text_);
  const TextSources sources = find_text(path).take_or_throw();
  const ContentHash content = hash_text_sources(sources).take_or_throw();
  const CharacterTokenizer narrow({U'\n', U' ', U',', U'd', U'e', U'h', U'l', U'o', U'r', U'w'});
  EXPECT_EQ(
      cached_tokens(sources, content, narrow, cache_).error(),
      path + ": line 1: character U+00F6 '\u00F6' is not among the tokenizer's 10 characters");
  EXPECT_EQ(cache_files(), 0) << "a part of a cache stayed behind";
}

TEST_F(TokenCache, ATextThatChangesMeanwhileIsRefused) {
  const std::string path = folder_.put("text.txt", text_);
  const TextSources sources = find_text(path).take_or_throw();
  const ContentHash content = hash_text_sources(sources).take_or_throw();
  const CharacterTokenizer tokenizer(collect_characters(sources).take_or_throw());
  folder_.put("text.txt", text_ + text_);
  EXPECT_EQ(cached_tokens(sources, content, tokenizer, cache_).error(),
            path + " changed while it was being read");
  EXPECT_EQ(cache_files(), 0);
}

TEST_F(TokenCache, AFullDiskOrACrashLeavesNoBrokenCache) {
  for (const bool kill : {false, true}) {
    for (int operation = 0;; ++operation) {
      folder_.clear();
      testing::FaultyFiles files;
      kill ? files.kill_at(operation) : files.fail_at(operation, ENOSPC);
      const Result<CachedTokens> result = cached(text_, files);
      if (files.operations() <= operation) break;
      if (kill) files.cut_power(testing::Loss::kZeroedUnsyncedData);
      if (!result.ok() && !kill) {
        EXPECT_THAT(result.error(), HasSubstr("No space left"));
      }
      const Result<CachedTokens> later = cached(text_);
      ASSERT_TRUE(later.ok()) << later.error();
      EXPECT_EQ(all(later.value().tokens), expected(text_));
      EXPECT_THAT(later.value().note, ::testing::AnyOf("", "made"));
      EXPECT_EQ(cache_files(), 1) << "a temporary file stayed behind";
    }
  }
}

TEST_F(TokenCache, AFolderThatCannotBeMadeIsNamed) {
  folder_.put("cache", "a file in the way");
  EXPECT_THAT(cached(text_).error(), HasSubstr("cannot create the folder " + cache_));
  EXPECT_THAT(cached(text_).error(), HasSubstr("data.cache_dir"));
}

}  // namespace
}  // namespace fullbore
