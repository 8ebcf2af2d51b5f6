#include <gmock/gmock.h>

#include "workloads/chess/tests/commands/chess_training.h"

namespace fullbore::chess {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ChessReportCommand : public ChessTraining {};

TEST_F(ChessReportCommand, ShowsWhatTheRunMeasuredAndAnswers) {
  warm_up();
  ASSERT_EQ(reward({"run.dir=grpo", "train.steps=3"}).exit_code, 0);
  CommandResult result = command({"chess", "report", "grpo", "--records", "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "written: grpo/report.html\n");
  const std::string page = read("grpo/report.html");
  for (const char* part :
       {">Reward<", ">Legality<", ">Best move<", ">Way from the reference<", ">Entropy<",
        ">Length of completions<", ">Rewards<", ">Advantages within groups<", "<use ", ">seconds<",
        "12 answers to 4 positions"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(command({"chess", "report", "grpo"}).err, HasSubstr("report.html"));
  EXPECT_EQ(read("grpo/report.html"), page) << "what is there is replaced by --force alone";
  result = command({"chess", "report", "grpo", "--records", "0", "-o", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr(">Reward<"));
  EXPECT_THAT(result.out, Not(HasSubstr("Answers of the last checkpoint")));
  // A run that learned from records has other metrics.
  result = command({"chess", "report", "warm", "--records", "2", "--samples", "1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read("warm/report.html"), HasSubstr(">loss<"));
  EXPECT_EQ(command({"chess", "report", "nowhere"}).exit_code, 3);
}

}  // namespace
}  // namespace fullbore::chess
