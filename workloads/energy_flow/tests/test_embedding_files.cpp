#include "workloads/energy_flow/embedding_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/energy_flow/embedding_summary.h"
#include "workloads/energy_flow/sentence_corpus.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EmbeddingRecord tokens_record(std::vector<int32_t> ids, std::vector<float> vector) {
  EmbeddingRecord record;
  record.vector = std::move(vector);
  record.has_tokens = true;
  record.tokens.mask.assign(ids.size(), 1);
  record.tokens.ids = std::move(ids);
  return record;
}

EmbeddingRecord text_record(std::string text, std::vector<float> vector) {
  EmbeddingRecord record;
  record.vector = std::move(vector);
  record.has_text = true;
  record.text = std::move(text);
  return record;
}

std::string little_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<char>(number >> shift & 0xFFU));
  return bytes;
}

class EmbeddingFiles : public ::testing::Test {
 protected:
  std::string write(const std::string& name, EmbeddingFormat format, const EmbeddingFacts& facts,
                    const std::vector<EmbeddingRecord>& records) {
    EmbeddingWriter writer =
        EmbeddingWriter::create(folder_ / name, format, facts, std::ssize(records)).take_or_throw();
    for (const EmbeddingRecord& record : records)
      EXPECT_TRUE(writer.write(record).ok()) << writer.write(record).error();
    EXPECT_TRUE(writer.commit().ok());
    return folder_ / name;
  }

  static std::vector<EmbeddingRecord> read(const std::string& path) {
    const auto reader = open_embeddings(path).take_or_throw();
    std::vector<EmbeddingRecord> records;
    EmbeddingRecord record;
    while (reader->next(record).take_or_throw()) records.push_back(record);
    return records;
  }

  /// Why it cannot be read; "" if it can.
  static std::string problem(const std::string& path, const EmbeddingReadOptions& options = {}) {
    Result<std::unique_ptr<EmbeddingReader>> reader = open_embeddings(path, options);
    if (!reader) return reader.error();
    EmbeddingRecord record;
    for (;;) {
      const Result<bool> more = reader.value()->next(record);
      if (!more) return more.error();
      if (!more.value()) return "";
    }
  }

  std::string problem_of(const std::string& contents) {
    const std::string path = folder_.put("file", contents);
    const std::string found = problem(path);
    EXPECT_THAT(found, StartsWith(path + ":"));
    return found.substr(std::min(path.size(), found.size()));
  }

  uint32_t checksum(const std::string& path) {
    const std::string bytes = read_file(path).take_or_throw();
    return static_cast<uint32_t>(
        ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
  }

  testing::ScratchFolder folder_;
};

// The workload's specification, check A13: lengths and checksums of another program's files.
TEST_F(EmbeddingFiles, AreTheBytesOfTheSpecification) {
  std::vector<EmbeddingRecord> records;
  for (uint64_t i = 0; i < 4; ++i) {
    const SentencePair pair = sentence_pair(42, i);
    for (const std::string& text : {pair.premise, pair.hypothesis})
      records.push_back(text_record(text, sentence_embedding(text)));
  }
  const std::string pairs =
      write("pairs.efb", EmbeddingFormat::efb2,
            {.width = 768, .has_text = true, .normalized = true, .pairs = true}, records);
  EXPECT_EQ(std::filesystem::file_size(pairs), 24830U);
  EXPECT_EQ(checksum(pairs), 0xa406bf71U);

  const std::string tokens = write(
      "tokens.efb", EmbeddingFormat::efb1, {.width = 3, .has_tokens = true},
      {tokens_record({101, 7, 102}, {0.5F, -1, 0.25F}), tokens_record({101, 102}, {1, 2, -3.5F})});
  EXPECT_EQ(std::filesystem::file_size(tokens), 69U);
  EXPECT_EQ(checksum(tokens), 0xadf7e6aeU);
}

TEST_F(EmbeddingFiles, AreReadAsTheyWereWritten) {
  EmbeddingRecord both = tokens_record({7, 2147483647, 0}, {0.1F, -3e-7F});
  both.tokens.mask = {1, 0, 1};
  both.has_text = true;
  both.text = "caf\xC3\xA9 \"quoted\" \\ \n";
  EmbeddingRecord empty = tokens_record({}, {1, 0});
  empty.has_text = true;
  const EmbeddingFacts facts{.width = 2, .has_tokens = true, .has_text = true, .pairs = true};
  for (const auto format : {EmbeddingFormat::efb2, EmbeddingFormat::jsonl}) {
    const std::vector<EmbeddingRecord> found = read(write("file", format, facts, {both, empty}));
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].vector, both.vector);
    EXPECT_EQ(found[0].text, both.text);
    EXPECT_EQ(found[0].tokens.ids, both.tokens.ids);
    EXPECT_EQ(found[0].tokens.mask, both.tokens.mask);
    EXPECT_TRUE(found[1].has_text && found[1].text.empty());
    EXPECT_TRUE(found[1].has_tokens && found[1].tokens.ids.empty());
  }
}

// A block of the reader ends within a number, and records are longer than a block.
TEST_F(EmbeddingFiles, AreReadAcrossBlocks) {
  std::vector<EmbeddingRecord> records;
  for (int i = 0; i < 5; ++i) {
    std::vector<float> vector(40'000);
    for (size_t k = 0; k < vector.size(); ++k)
      vector[k] = static_cast<float>(std::sin(static_cast<double>(k) + i)) / 10;
    records.push_back(text_record(std::string(static_cast<size_t>(i) + 1, 'x'), vector));
  }
  const auto found =
      read(write("large.efb", EmbeddingFormat::efb2, {.width = 40'000, .has_text = true}, records));
  ASSERT_EQ(found.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(found[i].vector, records[i].vector);
    EXPECT_EQ(found[i].text, records[i].text);
  }
}

TEST_F(EmbeddingFiles, LinesMayLackAndHaveFields) {
  const std::string path =
      folder_.put("lines.jsonl",
                  "\xEF\xBB\xBF{\"target\": [1, 2.5e-1, -0.5], \"id\": {\"a\": [1]}}\r\n\n"
                  "{\"text\": \"t\\u00e9\", \"input_ids\": [5, 6], \"target\": [0.1, 0.2, 0.3]}\n");
  const std::vector<EmbeddingRecord> records = read(path);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_THAT(records[0].vector, ElementsAre(1, 0.25F, -0.5F));
  EXPECT_FALSE(records[0].has_text || records[0].has_tokens);
  EXPECT_EQ(records[1].text, "t\xC3\xA9");
  EXPECT_THAT(records[1].tokens.mask, ElementsAre(1, 1));
}

TEST_F(EmbeddingFiles, OfEfbSayWhatIsWrong) {
  const std::string head = "EFB2" + little_endian(1) + little_endian(2) + little_endian(3);
  const std::string vector = little_endian(std::bit_cast<uint32_t>(1.0F)) + little_endian(0);
  EXPECT_THAT(problem_of("EFB3" + head), HasSubstr("byte 0: no embeddings; EFB1 or EFB2 was"));
  EXPECT_THAT(problem_of("EFB2" + little_endian(1)), HasSubstr("the width: the file ends here"));
  EXPECT_THAT(problem_of("EFB1" + little_endian(1) + little_endian(0)),
              HasSubstr("byte 8: a width of 0; 1 to 65536 was expected"));
  EXPECT_THAT(problem_of("EFB1" + little_endian(1) + little_endian(0xFFFFFFFF)),
              HasSubstr("byte 8: a width of 4294967295"));
  EXPECT_THAT(problem_of("EFB2" + little_endian(2) + little_endian(2) + little_endian(16)),
              HasSubstr("byte 12: flags 0x10, of which 0x10 is not known"));
  EXPECT_THAT(problem_of("EFB2" + little_endian(1) + little_endian(2) + little_endian(8) + vector),
              HasSubstr("byte 4: 1 records, but pairs are an even number"));
  EXPECT_THAT(problem_of("EFB1" + little_endian(0xFFFFFFFF) + little_endian(65536) + vector),
              HasSubstr("cut short: 4294967295 records take"));
  // Lengths within a record that lead out of the file, or overflow.
  EXPECT_THAT(problem_of(head + little_endian(90) + "text" + vector),
              HasSubstr("byte 20, record 1 of 1: text: 90 bytes, but the file ends behind 12"));
  EXPECT_THAT(problem_of(head + little_endian(0xFFFFFFFF) + little_endian(0) + vector),
              HasSubstr("text: 4294967295 bytes; at most 1048576 were expected"));
  EXPECT_THAT(problem_of(head + little_endian(0) + little_endian(0x40000000) + vector),
              HasSubstr("input_ids: 1073741824 tokens; at most 65536 were expected"));
  EXPECT_THAT(problem_of(head + little_endian(0) + little_endian(3) + vector),
              HasSubstr("input_ids: 3 tokens take 15 bytes, but the file ends behind 8"));
  EXPECT_THAT(problem_of(head + little_endian(2) + "\xC3(" + little_endian(0) + vector),
              HasSubstr("text: byte 0 of it:"));
  EXPECT_THAT(
      problem_of(head + little_endian(0) + little_endian(1) + little_endian(5) + '\2' + vector),
      HasSubstr("attention_mask: 2 at token 0; 0 or 1 was expected"));
  EXPECT_THAT(problem_of(head + little_endian(0) + little_endian(1) + little_endian(1U << 31) +
                         '\1' + vector),
              HasSubstr("input_ids: token 0 is 2147483648; 0 to 2147483647 were expected"));
  EXPECT_THAT(problem_of(head + little_endian(0) + little_endian(0) + vector + "x"),
              HasSubstr("1 bytes behind the last of 1 records"));
  EXPECT_EQ(problem(folder_.put("good", head + little_endian(0) + little_endian(0) + vector)), "");
}

TEST_F(EmbeddingFiles, OfLinesSayWhatIsWrong) {
  const std::string good = "{\"target\": [1, 2]}\n";
  EXPECT_THAT(problem_of(good + "{\"target\": [1, 2, 3]}\n"),
              HasSubstr(":2: target: 3 numbers, 2 were expected"));
  EXPECT_THAT(problem_of("{\"text\": \"a\"}\n"), HasSubstr(":1: the field 'target' is missing"));
  EXPECT_THAT(problem_of("{\"target\": [1, \"2\"]}\n"),
              HasSubstr(":1: target: element 1 is '\"2\"'; a finite number was expected"));
  EXPECT_THAT(problem_of("{\"target\": [1, 1e999]}\n"), HasSubstr("a finite number was expected"));
  EXPECT_THAT(problem_of("{\"target\": [1, 1e39]}\n"), HasSubstr("target: element 1 is inf"));
  EXPECT_THAT(problem_of("{\"target\": []}\n"), HasSubstr("target: no numbers"));
  EXPECT_THAT(problem_of("[1]\n"), HasSubstr(":1: byte 0"));
  EXPECT_THAT(problem_of("{\"target\": [1]\n"), HasSubstr(":1: byte"));
  EXPECT_THAT(problem_of("{\"attention_mask\": [1], \"target\": [1]}\n"),
              HasSubstr("'attention_mask' is there without 'input_ids'"));
  EXPECT_THAT(problem_of("{\"input_ids\": [1, 2], \"attention_mask\": [1], \"target\": [1]}\n"),
              HasSubstr("attention_mask: 1 numbers for 2 input_ids"));
  EXPECT_THAT(problem_of("{\"input_ids\": [-1], \"target\": [1]}\n"),
              HasSubstr("input_ids: -1; 0 to 2147483647 were expected"));
  EXPECT_THAT(problem_of("{\"input_ids\": [1.5], \"target\": [1]}\n"), HasSubstr(":1: byte"));
}

TEST_F(EmbeddingFiles, HoldVectorsThatAreUsable) {
  EXPECT_THAT(problem_of("{\"target\": [0, 0]}\n"),
              HasSubstr("target: its length is 0, 0.01 to 100 were expected"));
  EXPECT_THAT(problem_of("{\"target\": [80, 80]}\n"), HasSubstr("its length is 113.137"));
  const auto head = [](uint32_t flags) {
    return "EFB2" + little_endian(1) + little_endian(1) + little_endian(flags);
  };
  const auto number = [](float value) { return little_endian(std::bit_cast<uint32_t>(value)); };
  EXPECT_THAT(problem_of(head(0) + number(NAN)), HasSubstr("target: element 0 is nan"));
  EXPECT_THAT(problem_of(head(4) + number(0.9F)),
              HasSubstr("its length is 0.9, but the file says that it is 1"));
  const std::string path = folder_.put("wide", head(0) + number(1));
  EXPECT_THAT(problem(path, {.width = 768}),
              HasSubstr("byte 8: vectors of 1 numbers; 768 were expected"));
  EXPECT_EQ(problem(path, {.width = 1}), "");
}

// Every length that a file can be cut to is an error, and never a crash.
TEST_F(EmbeddingFiles, CutShortAreRefused) {
  const std::string whole =
      read_file(write("whole", EmbeddingFormat::efb1, {.width = 3, .has_tokens = true},
                      {tokens_record({1, 2}, {1, 2, 3}), tokens_record({3}, {4, 5, 6})}))
          .take_or_throw();
  for (size_t bytes = 4; bytes < whole.size(); ++bytes)
    EXPECT_NE(problem(folder_.put("cut", whole.substr(0, bytes))), "") << bytes;
}

TEST_F(EmbeddingFiles, AreConverted) {
  const std::string lines = folder_.put("lines.jsonl",
                                        "{\"text\": \"a\", \"input_ids\": [1], \"target\": [3, "
                                        "4]}\n{\"text\": \"b\", \"target\": [0.6, 0.8]}\n");
  const EmbeddingConversion unit{.format = EmbeddingFormat::efb2, .pairs = true, .normalize = true};
  const ConvertedEmbeddings converted =
      convert_embeddings(lines, folder_ / "unit.efb", unit).take_or_throw();
  EXPECT_EQ(converted.records, 2);
  EXPECT_THAT(converted.left_out, ElementsAre("tokens are left out: 1 of 2 records have none"));
  const EmbeddingSummary summary =
      summarize_embeddings(folder_ / "unit.efb", {}, 1).take_or_throw();
  EXPECT_TRUE(summary.says_pairs && summary.says_normalized);
  EXPECT_EQ(summary.texts, 2);
  EXPECT_THAT(summary.first_texts, ElementsAre("a"));
  EXPECT_NEAR(summary.least_norm, 1, 1e-6);
  EXPECT_NEAR(summary.most_norm, 1, 1e-6);

  EXPECT_THAT(convert_embeddings(lines, folder_ / "x", {.format = EmbeddingFormat::efb1}).error(),
              HasSubstr("1 of 2 records have no tokens, which EFB1 needs"));
  EXPECT_THAT(convert_embeddings(lines, folder_ / "x", {.pairs = true, .limit = 1}).error(),
              HasSubstr("1 records, but pairs are an even number"));
  EXPECT_THAT(convert_embeddings(folder_.put("none", "\n"), folder_ / "x", {}).error(),
              HasSubstr("no records"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

}  // namespace
}  // namespace fullbore::energy_flow
