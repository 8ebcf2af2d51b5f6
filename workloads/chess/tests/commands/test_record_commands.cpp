#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/job.h"
#include "workloads/chess/record_file.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;

class RecordCommands : public JobTest {
 protected:
  nlohmann::json json(const std::vector<std::string>& arguments) {
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(RecordCommands, PrepareWritesBothSidesOfTheSplit) {
  const std::vector<std::string> words = {
      "chess",      "prepare",  "--recipe",         "games", "--records",
      "300",        "--truth",  "search:1",         "--out", "all",
      "--held-out", "held_out", "--held-out-share", "0.2",   "--json"};
  const nlohmann::json made = json(words);
  EXPECT_EQ(made["records"], 300);
  EXPECT_EQ(made["truth"], "search to depth 1");
  EXPECT_GT(made["arbiter"], 50);
  EXPECT_GT(made["baselines"]["copied_position"]["reward"], 0.7);
  const auto trained = read_all_records(folder_ / "all").take_or_throw();
  const auto held_out = read_all_records(folder_ / "held_out").take_or_throw();
  EXPECT_EQ(trained.size() + held_out.size(), 300U);
  EXPECT_EQ(made["held_out"], held_out.size());
  EXPECT_GT(held_out.size(), 20U);
  CommandResult result = command(words);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("all"));
  result = command({"chess", "prepare", "--records", "20", "--truth", "search:1", "--format",
                    "published", "--out", "padded"});
  EXPECT_THAT(result.out, HasSubstr("padded: 20 records (20 P, 0 A) by search to depth 1 in "));
  EXPECT_THAT(result.out, HasSubstr("P always answered by "));
  EXPECT_EQ(command({"chess", "prepare", "--records", "20", "--truth", "search:1", "--format",
                     "published", "--force-prefix", "--out", "forced"})
                .exit_code,
            0);
  EXPECT_TRUE(read_all_records(folder_ / "forced").take_or_throw()[0].prompt.ends_with("  M:"));
  EXPECT_EQ(read_all_records(folder_ / "padded").take_or_throw()[0].prompt.find("M:"),
            std::string::npos);
}

TEST_F(RecordCommands, PrepareNamesWhatIsMissing) {
  CommandResult result = command({"chess", "prepare", "--out", "x", "--truth", "magic"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("truth 'magic': search, search:1 to search:6, stockfish"));
  result =
      command({"chess", "prepare", "--out", "x", "--truth", "stockfish", "--engine", "nothing"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("nothing: No such file"));
  EXPECT_EQ(command({"chess", "prepare", "--out", "x", "--records", "-2"}).exit_code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x"));
}

TEST_F(RecordCommands, ScoreTellsBaselinesBesideMeans) {
  const std::string start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
  const std::vector<RankedMove> top = {{"e2e4", .3}, {"d2d4", .2}};
  const std::vector<size_t> order = {1, 0};
  const ArbiterAnswer answer{"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1", 0.001,
                             false, false};
  const std::string policy = record_line(policy_record(start, top, order, short_format()));
  const std::string arbiter =
      record_line(arbiter_record(start, "e2e4", {}, answer, short_format()));
  const auto with = [](std::string line, const std::string& text) {
    line.pop_back();
    return line + ",\"answer\":" + nlohmann::json(text).dump() + "}\n";
  };
  folder_.put("answers", with(policy, " d2d4 e2e4 E: 0.2 0.3 B: e2e4") + with(policy, "junk") +
                             with(arbiter, start + "+0.001+0+0"));
  nlohmann::json scores = json({"chess", "score", "answers", "--each", "each", "--json"});
  EXPECT_EQ(scores["policy"]["answers"], 2);
  EXPECT_NEAR(scores["policy"]["reward"], (1 - 0.3) / 2, 1e-6);
  EXPECT_EQ(scores["policy"]["format"], 0.5);
  EXPECT_EQ(scores["policy"]["format_interval"], nlohmann::json({0.0, 1.0}));
  EXPECT_EQ(scores["baselines"]["constant_move"]["positions"], 1);
  EXPECT_NEAR(scores["arbiter"]["reward"], 0.906469, 1e-6);
  EXPECT_THAT(read("each"), HasSubstr("{\"task\":\"A\",\"reward\":0.906"));
  EXPECT_THAT(read("each"), HasSubstr("\"candidates\":1.0"));
  scores = json({"chess", "score", "answers", "--scheme", "C", "--json"});
  EXPECT_NEAR(scores["arbiter"]["reward"], -0.66, 1e-6);
  const CommandResult table = command({"chess", "score", "answers"});
  EXPECT_THAT(table.out, HasSubstr("P: 2 answers, scheme weighted\n"));
  EXPECT_THAT(table.out, HasSubstr("the prompt's position copied: 0.906"));

  folder_.put("records", policy + "\n" + arbiter + "\n");
  EXPECT_EQ(json({"chess", "score", "records", "--own-completion", "--json"})["arbiter"]["exact"],
            1);
  const CommandResult unanswered = command({"chess", "score", "records"});
  EXPECT_EQ(unanswered.exit_code, 3);
  EXPECT_THAT(unanswered.err, HasSubstr("records:1: byte "));
  EXPECT_THAT(unanswered.err, HasSubstr("there is no field 'answer'"));
}

}  // namespace
}  // namespace fullbore::chess
