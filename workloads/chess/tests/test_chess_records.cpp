#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/data/bpe_files.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"
#include "workloads/chess/record_file.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

const std::string kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
const std::string kAfterE4 = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1";
const std::vector<RankedMove> kTop = {
    {"e2e4", .32}, {"d2d4", .29}, {"g1f3", .24}, {"c2c4", .24}, {"b1c3", .21}};
const std::vector<size_t> kOrder = {1, 0, 2, 3, 4};

// The example of section 1.
TEST(ChessRecord, IsPaddedAsPublished) {
  const ChessRecord record = policy_record(kStart, kTop, kOrder, published_format());
  EXPECT_EQ(record.prompt, "P: " + kStart);
  EXPECT_EQ(record.completion, std::string(34, ' ') +
                                   "M: d2d4 e2e4 g1f3 c2c4 b1c3      E: 0.29 0.32 0.24 0.24 0.21 "
                                   "               B: e2e4");
  RecordFormat forced = published_format();
  forced.force_prefix = true;
  const ChessRecord longer = policy_record(kStart, kTop, kOrder, forced);
  EXPECT_EQ(longer.text(), record.text());
  EXPECT_EQ(longer.prompt, "P: " + kStart + std::string(34, ' ') + "M:");
  // A FEN that fills its columns still has a space behind it.
  const std::string long_fen(95, 'x');
  EXPECT_THAT(policy_record(long_fen, kTop, kOrder, published_format()).text(),
              HasSubstr("x M: d2d4"));
}

TEST(ChessRecord, IsShortForSmallModels) {
  const std::vector<RankedMove> top = {
      {"h1h8", 999.98}, {"a1a2", 0.26}, {"b1b2", -0.04}, {"c1c2", -999.97}};
  const std::vector<size_t> order = {3, 2, 1, 0};
  const std::string fen = "8/2k5/8/8/8/8/8/K6R w - - 0 40";
  ChessRecord record = policy_record(fen, top, order, short_format());
  EXPECT_EQ(record.prompt, "P: " + fen + " M:");
  EXPECT_EQ(record.completion, " c1c2 b1b2 a1a2 h1h8 E: -20.0 0.0 0.3 20.0 B: h1h8");
  EXPECT_EQ(record.top[0].eval, 20);
  EXPECT_EQ(record.top[1].eval, 0.26);
  RecordFormat expanded = short_format();
  expanded.expanded_board = true;
  record = policy_record(fen, top, order, expanded);
  EXPECT_EQ(record.prompt,
            "P: ......../..k...../......../......../......../......../......../K......R w - - 0 40 "
            "M:");
  EXPECT_EQ(record.fen, fen);
  EXPECT_EQ(compact_fen(expanded_fen(kStart)), kStart);
}

TEST(ChessRecord, OfATransitionKeepsTheLastMoves) {
  const std::vector<std::string> history = {"e2e4", "e7e5", "g1f3", "b8c6", "f1c4"};
  const ArbiterAnswer answer{kAfterE4, 0.001, false, false};
  ChessRecord record = arbiter_record(kStart, "e2e4", {}, answer, short_format());
  EXPECT_EQ(record.prompt, "A: " + kStart + "+e2e4+e2e4+");
  EXPECT_EQ(record.completion, kAfterE4 + "+0.001+0+0");
  record = arbiter_record(kStart, "d2d4", history, answer, short_format());
  EXPECT_EQ(record.prompt, "A: " + kStart + "+d2d4+g1f3 b8c6 f1c4 d2d4+");
  record = arbiter_record(kStart, "d2d4", history, answer, published_format());
  EXPECT_THAT(record.prompt, HasSubstr("+e2e4 e7e5 g1f3 b8c6 f1c4 d2d4+"));
  EXPECT_EQ(answer_text({"f", 1, true, false}), "f+1.0+1+0");
  EXPECT_EQ(answer_text({"f", -1, false, true}), "f+-1.0+0+1");
  EXPECT_EQ(reward_text(0.5), "0.5");
}

TEST(ChessRecord, LinesAreReadAsTheyWereWritten) {
  const ArbiterAnswer answer{kAfterE4, 0.001, false, false};
  for (const ChessRecord& record : {policy_record(kStart, kTop, kOrder, published_format()),
                                    policy_record(kStart, kTop, kOrder, short_format()),
                                    arbiter_record(kStart, "e2e4", {}, answer, short_format())})
    EXPECT_EQ(parse_record_line(record_line(record)).take_or_throw(), record);
}

std::string with(const std::string& from, const std::string& to) {
  std::string line = record_line(policy_record(kStart, kTop, kOrder, short_format()));
  const size_t at = line.find(from);
  EXPECT_NE(at, line.npos) << from;
  return line.replace(at, from.size(), to);
}

TEST(ChessRecord, LinesThatAreWrongAreTold) {
  const std::pair<std::string, std::string> cases[] = {
      {with("\"fen\"", "\"fem\""), "there is no field 'fem' of a record. Did you mean 'fen'?"},
      {with("\"task\":\"P\"", "\"task\":\"X\""), "'task' is 'X'; P or A was expected"},
      {with("\"task\":\"P\"", "\"task\":\"A\""), "a record of A has no 'top'"},
      {with("\"task\":\"P\"", "\"task\":7"), "'task' is a number; a text was expected"},
      {with("\"task\":\"P\",", ""), "there is no field 'task'"},
      {with("\"task\":\"P\",", "\"task\":\"P\",\"task\":\"P\","), "'task' stands twice"},
      {with("[\"e2e4\",0.32]", "[\"e2e5\",0.32]"), "'e2e5' is no legal move"},
      {with("[\"e2e4\",0.32]", "[\"d2d4\",0.32]"), "'d2d4' stands twice"},
      {with("[\"e2e4\",0.32]", "[\"e2e4\"]"), "'top[]' is [move, pawns]"},
      {with("[\"e2e4\",0.32]", "[\"e2e4\",0.32,1]"), "'top[]' is [move, pawns]"},
      {with("0.32]", "1e999]"), "a finite number was expected"},
      {with("\"P: rnb", "\"P: rnq"), "'prompt' does not begin with 'P: rnb"},
      {with(kStart + "\"", "8/8 w\""), "FEN"},
      {"{\"task\": \"P\"", "byte"},
      {"[]", "'record' is a list"},
      {"", "byte 0"}};
  for (const auto& [line, message] : cases) {
    const Result<ChessRecord> record = parse_record_line(line);
    ASSERT_FALSE(record.ok()) << line;
    EXPECT_THAT(record.error(), HasSubstr(message)) << line;
  }
}

struct Parsed {
  std::vector<ChessRecord> records;
  CorpusCounts counts;
  std::string error;
};
Parsed parsed(const std::string& text, const CorpusOptions& options = {}) {
  Parsed all;
  const Result<CorpusCounts> counts =
      parse_records(text, "corpus", options, [&](ChessRecord&& record) -> Status {
        all.records.push_back(std::move(record));
        return success();
      });
  if (counts.ok())
    all.counts = counts.value();
  else
    all.error = counts.error();
  return all;
}

// The record of section 1 whose label is the worst of the five.
const std::string kBlack =
    "P: 2b3k1/Q4rqn/p2p4/4p3/p6p/2PP3P/BP3PP1/R5K1 b - - 0 34" + std::string(38, ' ') +
    "M: h7f8 h7f6 g7f6 g7g5 g7h6      E: -1.77 -3.21 -2.5 -2.6 -3.0            B: h7f6";

TEST(ChessCorpus, BlacksLabelIsDerivedAnew) {
  Parsed all = parsed(kBlack + "\r\n\n" + kBlack);
  ASSERT_EQ(all.records.size(), 2U) << all.error;
  EXPECT_EQ(all.counts.relabelled, 2);
  const ChessRecord& record = all.records[0];
  EXPECT_TRUE(record.completion.ends_with("B: h7f8")) << record.completion;
  EXPECT_EQ(record.prompt.size(), kBlack.find(" b - - 0 34") + 11);
  EXPECT_EQ(record.top[0], (RankedMove{"h7f8", -1.77}));
  EXPECT_EQ(record.top[4], (RankedMove{"h7f6", -3.21}));
  all = parsed(kBlack, {.legacy_black_label = false});
  ASSERT_EQ(all.records.size(), 1U) << all.error;
  EXPECT_EQ(all.records[0].text(), kBlack);
  EXPECT_EQ(all.records[0].top[0].move, "h7f6");
  EXPECT_EQ(all.records[0].top[1].move, "h7f8");
}

TEST(ChessCorpus, AmbiguousLabelsAreLeftOut) {
  std::string line = kBlack;
  line.replace(line.find("-2.5"), 4, "-1.77");
  Parsed all = parsed(line);
  EXPECT_EQ(all.error, "");
  EXPECT_TRUE(all.records.empty());
  EXPECT_EQ(all.counts.ambiguous, 1);
  EXPECT_EQ(parsed(line, {.legacy_black_label = false}).records.size(), 1U);
}

TEST(ChessCorpus, BothFormsOfBothTasksAreRead) {
  const std::string arbiter =
      "8/2k2b2/R1p4r/3p1p2/P7/2P2B1P/5PPK/4R3 w - - 1 31+a6a5+f7e7 h5f3 e6f7 b1b6 h8h6 a1e1 e7d8 "
      "b6a6 d8c7 a6a5+8/2k2b2/2p4r/R2p1p2/P7/2P2B1P/5PPK/4R3 b - - 2 31+0.001+0+0";
  RecordFormat expanded = short_format();
  expanded.expanded_board = true;
  const std::vector<ChessRecord> written = {
      policy_record(kStart, kTop, kOrder, published_format()),
      policy_record(kStart, {{"e2e4", .4}, {"d2d4", .3}}, std::vector<size_t>{1, 0}, expanded)};
  const Parsed all = parsed(written[0].text() + "\n" + written[1].text() + "\n" + arbiter +
                            "\nA: " + arbiter + "\n" + record_line(written[1]));
  ASSERT_EQ(all.error, "");
  ASSERT_EQ(all.records.size(), 5U);
  EXPECT_EQ(all.records[0], written[0]);
  EXPECT_EQ(all.records[1].prompt, written[1].prompt);
  EXPECT_EQ(all.records[1].fen, kStart);
  EXPECT_EQ(all.records[2], all.records[3]);
  EXPECT_EQ(all.records[2].text(), "A: " + arbiter);
  EXPECT_EQ(all.records[2].move, "a6a5");
  EXPECT_EQ(all.counts.prefixed, 1);
  EXPECT_EQ(all.records[4], written[1]);
}

TEST(ChessCorpus, MalformedLinesAreToldOrCounted) {
  const std::string start = "P: " + kStart + " M: ";
  const std::pair<std::string, std::string> cases[] = {
      {"hello", "found 'hello'"},
      {"P: 8/8/8/8 M: e2e4", "M: was expected"},
      {"P: " + kStart, "what stands behind the FEN is ''"},
      {"P: 8/8/8/8/8/8/k7/K7 w - - 0 1 M: a1a2 E: 0 B: a1a2", "FEN"},
      {start + "e2e4 e2e9 E: 0 0 B: e2e4", "what stands behind the moves is 'e2e9'"},
      {start + "e2e4 E: x B: e2e4", "E: is 'x'; a number was expected"},
      {start + "e2e4 E: 0 1 B: e2e4", "E: has 2 numbers for 1 moves"},
      {start + "e2e4 E: 0 B: d2d4", "B: is 'd2d4'; one of the moves behind M: was expected"},
      {start + "e2e4 E: 0 B: e2e4 x", "what follows B: is 'x'"},
      {start + "e2e5 E: 0 B: e2e5", "'e2e5' is no legal move"},
      {"A: " + kStart + "+e2e4+e2e4", "FEN+move+history+answer"},
      {"A: " + kStart + "+e2e9+e2e9+x/y+0+0+0", "the move is 'e2e9'"},
      {"A: " + kStart + "+e2e4+d2d4+x/y+0+0+0", "the history's last move is 'd2d4'"},
      {"A: " + kStart + "+e2e4+e2e4+x/y+0+0", "the answer is 'x/y+0+0'"},
      {"A: " + kStart + "+e2e4+e2e4+x/y+0+0+0", "the answer's FEN"},
      {"{}", "there is no field 'task'"}};
  std::string all_lines;
  for (const auto& [line, message] : cases) {
    EXPECT_THAT(parsed("\n" + line).error, HasSubstr("corpus:2: ")) << line;
    EXPECT_THAT(parsed("\n" + line).error, HasSubstr(message)) << line;
    all_lines += line + "\n";
  }
  const Parsed all = parsed(all_lines + kBlack, {.skip_malformed = true});
  EXPECT_EQ(all.records.size(), 1U);
  EXPECT_EQ(all.counts.malformed, static_cast<int64_t>(std::size(cases)));
  EXPECT_THAT(all.counts.first_malformed, HasSubstr("corpus:1: "));
}

TEST(ChessCorpus, FilesAreReadLineByLine) {
  const testing::ScratchFolder folder;
  const std::string path = folder.put("corpus.txt", kBlack + "\n" + kBlack + "\nx\n");
  EXPECT_THAT(read_all_records(path).error(), HasSubstr("corpus.txt:3: "));
  EXPECT_EQ(read_all_records(path, {.skip_malformed = true}).value().size(), 2U);
  EXPECT_THAT(read_all_records(folder.put("empty", "\n")).error(), HasSubstr("no record"));
  EXPECT_THAT(read_all_records(folder / "none").error(), HasSubstr("none"));
}

// Section 11: ids of prompts go on as in training, whichever of the two texts is encoded.
TEST(ChessRecord, BoundaryIsOneOfTokens) {
  const std::string folder = testing::shared_folder() + "/data/gpt2-tokenizer";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is not there";
  const auto tokenizer =
      parse_vocabulary_and_merges(read_file(folder + "/vocab.json").take_or_throw(),
                                  read_file(folder + "/merges.txt").take_or_throw(), folder)
          .take_or_throw();
  const auto ids = [&](const std::string& text) {
    std::vector<int32_t> tokens;
    tokenizer->append_tokens(text, tokens);
    return tokens;
  };
  RecordFormat forced = published_format();
  forced.force_prefix = true;
  const ArbiterAnswer answer{kAfterE4, 0.001, false, false};
  const std::vector<std::string> history = {"d2d4", "d7d5"};
  const ChessRecord published = policy_record(kStart, kTop, kOrder, published_format());
  const ChessRecord arbiter = arbiter_record(kStart, "e2e4", {}, answer, published_format());
  for (const ChessRecord& record :
       {published, policy_record(kStart, kTop, kOrder, forced),
        policy_record(kStart, kTop, kOrder, short_format()), arbiter,
        arbiter_record(kStart, "e2e4", history, answer, short_format())}) {
    std::vector<int32_t> apart = ids(record.prompt);
    const std::vector<int32_t> completion = ids(record.completion);
    apart.insert(apart.end(), completion.begin(), completion.end());
    EXPECT_EQ(apart, ids(record.text())) << record.text();
  }
  EXPECT_EQ(ids(published.prompt).size(), 41U);
  EXPECT_EQ(ids(policy_record(kStart, kTop, kOrder, forced).prompt).size(), 76U);
  EXPECT_EQ(ids(arbiter.prompt).size(), 52U);
  EXPECT_EQ(ids(arbiter.completion).size(), 50U);
  const std::vector<int32_t> padded = ids(published.completion);
  EXPECT_EQ(std::count(padded.begin(), padded.begin() + 33, 220), 33);
  EXPECT_EQ(padded[33], 337);
  EXPECT_EQ(padded[34], 25);
}

}  // namespace
}  // namespace fullbore::chess
