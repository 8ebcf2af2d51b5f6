#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/report_page.h"

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

ChessReport a_report() {
  ChessReport report;
  report.title = "a run <b>";
  report.facts = {{"status", "completed & more"}};
  for (int step = 1; step <= 3; ++step) {
    const auto at = static_cast<double>(step);
    report.curves.curves["reward"].push_back({at, at, 0.1 * at});
    report.curves.curves["kl"].push_back({at, at, 0.02});
    report.curves.curves["of/another"].push_back({at, at, 1});
  }
  const std::vector<RankedMove> top = {{"e2e4", .3}, {"d2d4", .2}};
  const std::vector<size_t> order = {0, 1};
  const std::string other = "8/8/8/8/8/k7/8/K6R w - - 0 1";
  const std::vector<RankedMove> ends = {{"h1h2", 5}};
  const std::vector<size_t> first = {0};
  report.records = {policy_record(kStart, top, order, short_format()),
                    policy_record(other, ends, first, short_format())};
  for (const char* text :
       {" e2e4 d2d4 E: 0.3 0.2 B: e2e4", " e2e4 E: 0 B: e2e5", "<script>alert(1)</script>\x1b[2J"})
    report.answers.push_back(answer_to(0, report.records[0], text));
  report.answers.push_back(answer_to(1, report.records[1], " h1h2 E: 5 B: h1h2"));
  report.answers.push_back(answer_to(1, report.records[1], " h1g1 E: 5 B: h1g1"));
  report.shown = 2;
  return report;
}

TEST(ReportPage, HasACurveOfEachMetricThatThereIs) {
  const ChessReport report = a_report();
  const std::vector<std::string> charts = report_charts(report.curves, 0);
  EXPECT_THAT(charts, ElementsAre(HasSubstr(">Reward<"), HasSubstr(">Way from the reference<")));
  EXPECT_EQ(count_of(charts[0], "stroke-width=\"2\""), 1) << "policy/reward was not measured";
  EXPECT_THAT(report_charts({}, 0), IsEmpty());
}

TEST(ReportPage, ChoosesOneAnswerOfEachRecord) {
  const ChessReport report = a_report();
  EXPECT_THAT(extreme_answers(report.answers, true, 9), ElementsAre(0, 3));
  EXPECT_THAT(extreme_answers(report.answers, false, 9), ElementsAre(2, 4));
  EXPECT_THAT(extreme_answers(report.answers, false, 1), ElementsAre(2));
  EXPECT_THAT(extreme_answers({}, true, 4), IsEmpty());
}

TEST(ReportPage, StandsAloneAndRunsNothing) {
  ChessReport report = a_report();
  const std::string page = report_page(report);
  EXPECT_THAT(page, HasSubstr("<h1>a run &lt;b&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("completed &amp; more"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)"));
  for (const char* foreign : {"<script", "<link", "<img", "@import", "\x1b", "src="})
    EXPECT_THAT(page, Not(HasSubstr(foreign))) << foreign;
  EXPECT_EQ(count_of(page, "<svg "), 2 + 2 + 1) << "curves, histograms, boards";
  EXPECT_EQ(count_of(page, "<title>" + kStart), 2) << "the best and the worst answer to it";
  EXPECT_EQ(count_of(page, "<use "), 2 * 32 + 2 * 3);
  EXPECT_THAT(page, HasSubstr("best e2e4, said e2e4"));
  EXPECT_THAT(page, HasSubstr("best h1h2, said h1g1"));
  EXPECT_THAT(page, HasSubstr("said no move"));
  report.answers = {answer_to(0, report.records[0], " e2e4 E: 0 B: e2e5")};
  EXPECT_THAT(report_page(report), HasSubstr("said e2e5, illegal"));
  report.answers.clear();
  EXPECT_THAT(report_page(report), Not(HasSubstr("Answers of the last checkpoint")));
}

}  // namespace
}  // namespace fullbore::chess
