#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/report_parts.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

ReportedAnswer answer_to(size_t record, const ChessRecord& asked, const std::string& text) {
  return {record, RecordTruth::create(asked).take_or_throw().score(text), text, 0};
}

/// Of two positions: three answers to one, two to the other.
struct Asked {
  std::vector<ChessRecord> records;
  std::vector<ReportedAnswer> answers;
};

Asked some_answers() {
  Asked asked;
  const std::vector<RankedMove> top = {{"e2e4", .3}, {"d2d4", .2}};
  const std::vector<size_t> order = {0, 1};
  const std::vector<RankedMove> ends = {{"h1h2", 5}};
  const std::vector<size_t> first = {0};
  asked.records = {policy_record(kStart, top, order, short_format()),
                   policy_record("8/8/8/8/8/k7/8/K6R w - - 0 1", ends, first, short_format())};
  for (const char* text :
       {" e2e4 d2d4 E: 0.3 0.2 B: e2e4", " e2e4 E: 0 B: e2e5", "<script>alert(1)</script>\x1b[2J"})
    asked.answers.push_back(answer_to(0, asked.records[0], text));
  asked.answers.push_back(answer_to(1, asked.records[1], " h1h2 E: 5 B: h1h2"));
  asked.answers.push_back(answer_to(1, asked.records[1], " h1g1 E: 5 B: h1g1"));
  return asked;
}

TEST(ReportParts, HaveACurveOfEachMetricThatThereIs) {
  RunCurves curves;
  for (int step = 1; step <= 3; ++step) {
    const auto at = static_cast<double>(step);
    curves.curves["reward"].push_back({at, at, 0.1 * at});
    curves.curves["kl"].push_back({at, at, 0.02});
    curves.curves["of/another"].push_back({at, at, 1});
  }
  const std::string html = learning_part(curves, 0).html;
  EXPECT_EQ(count_of(html, "<svg "), 2);
  EXPECT_EQ(count_of(html, "stroke-width=\"2\""), 2) << "policy/reward was not measured";
  EXPECT_THAT(html, HasSubstr(">Reward<"));
  EXPECT_THAT(html, HasSubstr(">Way from the reference<"));
  EXPECT_THAT(html, Not(HasSubstr("halve")));
  EXPECT_THAT(learning_part(curves, 3).html, HasSubstr("halve every 3 points"));
  EXPECT_EQ(count_of(learning_part({}, 0).html, "<svg "), 0);
}

TEST(ReportParts, ChooseOneAnswerOfEachRecord) {
  const Asked asked = some_answers();
  EXPECT_THAT(extreme_answers(asked.answers, true, 9), ElementsAre(0, 3));
  EXPECT_THAT(extreme_answers(asked.answers, false, 9), ElementsAre(2, 4));
  EXPECT_THAT(extreme_answers(asked.answers, false, 1), ElementsAre(2));
  EXPECT_THAT(extreme_answers({}, true, 4), IsEmpty());
}

TEST(ReportParts, ShowBoardsAndRunNothing) {
  const Asked asked = some_answers();
  const std::string html = answers_part(asked.records, asked.answers, 2).html;
  EXPECT_THAT(html, HasSubstr("5 answers to 2 positions"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
  for (const char* foreign : {"<script", "<link", "<img", "@import", "\x1b", "src="})
    EXPECT_THAT(html, Not(HasSubstr(foreign))) << foreign;
  EXPECT_EQ(count_of(html, "<svg "), 2 + 1) << "histograms and boards";
  EXPECT_EQ(count_of(html, "<title>" + kStart), 2) << "the best and the worst answer to it";
  EXPECT_EQ(count_of(html, "<use "), 2 * 32 + 2 * 3);
  EXPECT_THAT(html, HasSubstr("best e2e4, said e2e4"));
  EXPECT_THAT(html, HasSubstr("best h1h2, said h1g1"));
  EXPECT_THAT(html, HasSubstr("said no move"));
  const ReportedAnswer illegal = answer_to(0, asked.records[0], " e2e4 E: 0 B: e2e5");
  EXPECT_THAT(answers_part(asked.records, {&illegal, 1}, 2).html, HasSubstr("said e2e5, illegal"));
}

}  // namespace
}  // namespace fullbore::chess
