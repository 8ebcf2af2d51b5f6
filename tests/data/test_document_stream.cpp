#include "fullbore/data/document_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/byte_tokenizer.h"
#include "fullbore/data/character_tokenizer.h"
#include "fullbore/data/pre_tokenizer.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TextSourcesTest : public ::testing::Test {
 protected:
  std::vector<std::string> names(const std::string& path) {
    const Result<TextSources> sources = find_text(path);
    if (!sources.ok()) return {sources.error()};
    std::vector<std::string> result;
    for (const TextFile& file : sources.value().files)
      result.push_back(std::filesystem::relative(file.path, folder_.path()).string());
    return result;
  }
  testing::ScratchFolder folder_;
};

TEST_F(TextSourcesTest, FoldersAndPatternsAreReadInOrderOfPaths) {
  std::filesystem::create_directories(folder_ / "b/c");
  std::filesystem::create_directories(folder_ / "b/.git");
  folder_.put("b/2.txt", "2");
  folder_.put("b/10.txt", "10");
  folder_.put("b/c/x.jsonl", "{\"text\": \"x\"}");
  folder_.put("b/.hidden", "no");
  folder_.put("b/.git/config", "no");
  folder_.put("b/empty.txt", "");
  folder_.put("a[1].txt", "brackets are a file first");
  EXPECT_THAT(names(folder_ / "b"), ElementsAre("b/10.txt", "b/2.txt", "b/c/x.jsonl"));
  EXPECT_THAT(names(folder_ / "b/*.txt"), ElementsAre("b/10.txt", "b/2.txt"));
  EXPECT_THAT(names(folder_ / "a[1].txt"), ElementsAre("a[1].txt"));
  EXPECT_THAT(names(folder_ / "*/[12].txt"), ElementsAre("b/2.txt"));
  EXPECT_EQ(find_text(folder_ / "*.md").error(), "no file is like " + (folder_ / "*.md"));
  EXPECT_EQ(find_text(folder_ / "b/empty.txt").error(),
            (folder_ / "b/empty.txt") + " is empty: text was expected");
  EXPECT_THAT(find_text(folder_ / "none").error(), HasSubstr("No such file or directory"));
  EXPECT_THAT(find_text("").error(), HasSubstr("data.path is empty"));
  std::filesystem::create_directories(folder_ / "void");
  EXPECT_THAT(find_text(folder_ / "void").error(), HasSubstr("holds no text"));
}

TEST_F(TextSourcesTest, TheContentHashIsOfWhatIsRead) {
  const auto hash = [&](const std::string& path) {
    return hash_text_sources(find_text(path).take_or_throw()).take_or_throw().hash();
  };
  folder_.put("one.txt", "hello");
  EXPECT_EQ(hash(folder_ / "one.txt"), hash_text("hello"));
  std::filesystem::create_directories(folder_ / "two");
  folder_.put("two/a", "hel");
  folder_.put("two/b", "lo");
  const uint64_t both = hash(folder_ / "two");
  EXPECT_NE(both, hash(folder_ / "one.txt"));
  folder_.put("two/a", "hell");
  folder_.put("two/b", "o");
  EXPECT_NE(hash(folder_ / "two"), both) << "the same bytes, divided otherwise";
  folder_.put("l.jsonl", R"({"text": "a", "body": "b"})");
  TextSources lines = find_text(folder_ / "l.jsonl").take_or_throw();
  const uint64_t text_hash = hash_text_sources(lines).take_or_throw().hash();
  lines.field = "body";
  EXPECT_NE(hash_text_sources(lines).take_or_throw().hash(), text_hash);
}

TEST_F(TextSourcesTest, StandardInputIsKeptByContent) {
  int ends[2];
  const auto keep = [&](const std::string& text) {
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    Result<std::string> path = keep_standard_input(folder_ / "kept", ends[0]);
    ::close(ends[0]);
    return path;
  };
  const std::string first = keep("some text").take_or_throw();
  EXPECT_EQ(read_file(first).value(), "some text");
  EXPECT_EQ(keep("some text").take_or_throw(), first);
  EXPECT_NE(keep("other text").take_or_throw(), first);
  EXPECT_EQ(keep("").error(), "standard input is empty: text was expected");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "kept"), {}), 2);
}

class DocumentStreamTest : public ::testing::Test {
 protected:
  struct Read {
    std::vector<std::string> documents;
    std::vector<size_t> file_ends;  // in documents
    std::string error;
    size_t parts = 0;
  };
  static Read read(const TextSources& sources, size_t part_bytes, const Tokenizer& tokenizer) {
    Read result;
    DocumentStream stream(sources, tokenizer, part_bytes);
    TextPart part;
    std::string document;
    uint64_t bytes = 0;
    for (;;) {
      const Result<bool> more = stream.next(part);
      if (!more.ok()) {
        result.error = more.error();
        return result;
      }
      if (!more.value()) break;
      ++result.parts;
      bytes += part.source_bytes;
      size_t begin = 0;
      for (const size_t end : part.document_ends) {
        result.documents.push_back(document + part.text.substr(begin, end - begin));
        document.clear();
        begin = end;
      }
      document += part.text.substr(begin);
      if (part.ends_file) result.file_ends.push_back(result.documents.size());
    }
    EXPECT_EQ(document, "");
    EXPECT_EQ(bytes, sources.bytes());
    EXPECT_EQ(stream.content().files, hash_text_sources(sources).take_or_throw().files);
    return result;
  }
  Read read(const std::string& path, size_t part_bytes = DocumentStream::kPartBytes) {
    return read(find_text(path).take_or_throw(), part_bytes, ByteTokenizer());
  }
  testing::ScratchFolder folder_;
};

/// May be cut where a BPE may.
class Words : public ByteTokenizer {
 public:
  size_t last_cut(std::string_view text) const override { return last_word_boundary(text); }
};

TEST_F(DocumentStreamTest, DocumentsDoNotDependOnParts) {
  std::filesystem::create_directories(folder_ / "in");
  const std::string prose = "one two\n three   four\u00E9 \u4E2D\u6587\u3000five\n";
  folder_.put("in/a.txt", prose);
  folder_.put("in/b.jsonl",
              "{\"text\": \"first\\n\"}\n\n{\"text\": \"\"}\n{\"x\": 1, \"text\": "
              "\"second \u00E9\"}");
  folder_.put("in/c.txt", "z");
  const TextSources sources = find_text(folder_ / "in").take_or_throw();
  for (size_t size = 1; size < 100; ++size) {
    for (const bool words : {false, true}) {
      const Read all = read(sources, size, words ? Words() : ByteTokenizer());
      EXPECT_THAT(all.documents, ElementsAre(prose, "first\n", "second \u00E9", "z")) << size;
      EXPECT_THAT(all.file_ends, ElementsAre(1, 3, 4)) << size;
      EXPECT_EQ(all.error, "");
    }
  }
  EXPECT_GT(read(sources, 4, Words()).parts, 8U);
}

TEST_F(DocumentStreamTest, ATextThatMayNotBeCutIsReadWhole) {
  const std::string text(100'000, 'x');
  const Read all = read(find_text(folder_.put("t", text)).take_or_throw(), 10, Words());
  EXPECT_EQ(all.parts, 1U);
  EXPECT_EQ(all.documents, std::vector{text});
}

// Whoever reads holds a word or a line whole: from standard input they may have any length.
TEST_F(DocumentStreamTest, WhatCannotBeCutIsBounded) {
  const std::string words = std::string(3 << 20, 'a') + " " + std::string(3 << 20, 'b');
  const TextSources cut = find_text(folder_.put("cut.txt", words)).take_or_throw();
  EXPECT_EQ(read(cut, DocumentStream::kPartBytes, Words()).documents.at(0).size(), words.size());
  const std::string word = folder_.put("word.txt", "one\ntwo " + std::string(5 << 20, 'a'));
  EXPECT_EQ(read(find_text(word).take_or_throw(), DocumentStream::kPartBytes, Words()).error,
            word +
                ": from line 2 on 4.00 MiB without white space between words: a byte-level BPE "
                "cannot cut it");
  EXPECT_EQ(read(word).error, "") << "bytes may be cut anywhere";
  const std::string line = folder_.put(
      "a.jsonl", "{\"text\": \"a\"}\n{\"text\": \"" + std::string(65 << 20, 'a') + "\"}");
  EXPECT_EQ(read(line).error, line + ":2: the line is longer than 64.0 MiB");
}

TEST_F(DocumentStreamTest, FaultsAreNamedWhereverPartsEnd) {
  const std::string lines = folder_.put(
      "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": 5}\n{\"text\": \"c\"}\n");
  const std::string bytes = folder_.put("bytes.jsonl", "{\"text\": \"a\"}\n{\"text\": \"\xFF\"}\n");
  for (const size_t size : {size_t{1}, size_t{5}, DocumentStream::kPartBytes}) {
    EXPECT_EQ(read(lines, size).error,
              lines + ":3: the field 'text' is a number; a text was expected");
    EXPECT_THAT(read(bytes, size).error, HasSubstr("not UTF-8 text: byte 0xFF occurs in no UTF-8 "
                                                   "text (byte 24, line 2)"));
  }
}

TEST_F(DocumentStreamTest, LinesOfAPartAreThoseOfTheFile) {
  const TextSources prose = find_text(folder_.put("t.txt", "a b\nc d\ne f\n")).take_or_throw();
  const Words words;
  DocumentStream stream(prose, words, 5);
  TextPart part;
  std::vector<uint64_t> lines;
  while (stream.next(part).take_or_throw())
    for (size_t i = 0; i < part.text.size(); ++i)
      if (part.text[i] >= 'a') lines.push_back(line_of(part, i));
  EXPECT_THAT(lines, ElementsAre(1, 1, 2, 2, 3, 3));
  const TextSources documents =
      find_text(folder_.put("t.jsonl", "{\"text\": \"a\"}\n\n{\"text\": \"b\\nc\"}\n"))
          .take_or_throw();
  DocumentStream second(documents, words);
  ASSERT_TRUE(second.next(part).take_or_throw());
  EXPECT_EQ(line_of(part, 0), 1U);
  EXPECT_EQ(line_of(part, 1), 3U);
  EXPECT_EQ(line_of(part, 3), 3U);
}

TEST_F(DocumentStreamTest, CollectsTheCharactersOfAllDocuments) {
  std::filesystem::create_directories(folder_ / "in");
  folder_.put("in/a.txt", "b\u00E9b\n\U0001F600a\n");
  folder_.put("in/b.jsonl", "{\"text\": \"\\u4e2d\", \"id\": \"zzz\"}");
  EXPECT_THAT(collect_characters(find_text(folder_ / "in").take_or_throw()).take_or_throw(),
              ElementsAre(U'\n', U'a', U'b', U'\u00E9', U'\u4E2D', U'\U0001F600'));
}

}  // namespace
}  // namespace fullbore
