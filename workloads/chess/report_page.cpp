#include "workloads/chess/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fullbore/base/svg_text.h"
#include "fullbore/monitor/chart_picture.h"
#include "workloads/chess/board_picture.h"
#include "workloads/chess/fen.h"

namespace fullbore::chess {
namespace {

// Of arrows: the truth's first move, and the answer's, legal or not.
constexpr const char* kRight = "#009e73";
constexpr const char* kLegal = "#0072b2";
constexpr const char* kIllegal = "#d55e00";

struct ChartOfMetrics {
  const char* title;
  const char* unit;
  std::vector<const char*> metrics;
};

std::vector<ChartOfMetrics> all_charts() {
  return {
      {"Reward", "mean of a step", {"reward", "policy/reward", "arbiter/reward"}},
      {"Rules", "share of answers", {"policy/format", "policy/legal_best", "policy/legal_moves"}},
      {"Best move", "share of answers", {"policy/best_move", "policy/top_moves"}},
      {"Environment", "share of answers", {"arbiter/format", "arbiter/exact", "arbiter/core"}},
      {"Variety",
       "share",
       {"policy/distinct_best", "policy/unique_completions", "equal_groups", "truncated"}},
      {"Way from the reference", "nats a token", {"kl"}},
      {"Its coefficient", "", {"penalty"}},
      {"Entropy", "nats a token", {"entropy"}},
      {"Clipped ratios", "share of tokens", {"clipped_low", "clipped_high"}},
      {"Difference of trainer and generator", "nats", {"largest_log_ratio"}},
      {"Length of completions", "tokens", {"completion_tokens"}},
      {"Loss", "", {"loss", "validation_loss"}},
      {"Gradient", "norm", {"gradient_norm"}},
      {"Prompts without an engine's answer", "since the start", {"engine/unranked"}},
      {"Time of a step",
       "seconds",
       {"seconds/prompts", "seconds/prefill", "seconds/decode", "seconds/rewards", "seconds/batch",
        "seconds/reference", "step_seconds"}},
  };
}

std::string answered_move(const ReportedAnswer& answer) {
  const std::optional<Move>& move = answer.score.policy.best_move;
  return move ? uci_text(*move) : "";
}

BoardDrawing board_of(const ChessRecord& record, const ReportedAnswer& answer) {
  BoardDrawing board;
  if (parse_fen(record.fen, board.position) != FenError::kNone) return board;
  board.below = board.position.to_move;
  board.caption = fmt::format("{:.3f}", answer.score.reward());
  if (record.task == ChessTask::arbiter) {
    if (const auto move = parse_uci_move(record.move)) board.arrows = {{*move, kLegal}};
    board.caption +=
        fmt::format("  {}: {}", record.move,
                    answer.score.arbiter.exact ? "the position is right" : "the position is wrong");
    return board;
  }
  if (!record.top.empty()) {
    if (const auto move = parse_uci_move(record.top[0].move)) board.arrows = {{*move, kRight}};
    board.caption += "  best " + record.top[0].move;
  }
  if (const std::optional<Move>& move = answer.score.policy.best_move) {
    const bool is_legal = answer.score.policy.best_legal;
    if (!answer.score.policy.best_is_first)
      board.arrows.push_back({*move, is_legal ? kLegal : kIllegal});
    board.caption += fmt::format(", said {}{}", uci_text(*move), is_legal ? "" : ", illegal");
  } else {
    board.caption += ", said no move";
  }
  return board;
}

std::string answer_rows(const ChessReport& report, std::span<const size_t> chosen) {
  std::string rows;
  for (const size_t index : chosen) {
    const ReportedAnswer& answer = report.answers[index];
    rows += fmt::format(
        "<tr><td>{:.3f}</td><td>{:+.2f}</td><td>{}</td><td><code>{}</code></td>"
        "<td><code>{}</code></td></tr>\n",
        answer.score.reward(), answer.advantage, svg_text(answered_move(answer)),
        svg_text(report.records[answer.record].prompt), svg_text(answer.text));
  }
  return rows;
}

std::string answers_part(const ChessReport& report) {
  std::vector<double> rewards, advantages;
  for (const ReportedAnswer& answer : report.answers) {
    rewards.push_back(answer.score.reward());
    advantages.push_back(answer.advantage);
  }
  std::string part = fmt::format(
      "<h2>Answers of the last checkpoint</h2>\n<p>{} answers to {} positions, drawn anew.</p>\n"
      "<div class=\"charts\">\n{}{}</div>\n",
      report.answers.size(), report.records.size(),
      histogram_svg({"Rewards", "reward", "answers"}, rewards),
      histogram_svg({"Advantages within groups", "advantage", "answers"}, advantages));
  const std::vector<size_t> best = extreme_answers(report.answers, true, report.shown);
  const std::vector<size_t> worst = extreme_answers(report.answers, false, report.shown);
  std::vector<BoardDrawing> boards;
  for (const auto* chosen : {&best, &worst})
    for (const size_t index : *chosen)
      boards.push_back(
          board_of(report.records[report.answers[index].record], report.answers[index]));
  part += fmt::format(
      "<h2>Best answers, and worst below</h2>\n<p>Arrows: <b style=\"color:{}\">the truth's first "
      "move</b>, <b style=\"color:{}\">another that was answered</b>, <b style=\"color:{}\">one "
      "that is illegal</b>.</p>\n<div class=\"boards\">\n{}</div>\n",
      kRight, kLegal, kIllegal, boards_svg(boards, static_cast<int>(best.size())));
  const char* head =
      "<tr><th>reward</th><th>advantage</th><th>move</th><th>prompt</th><th>answer</th></tr>\n";
  part += fmt::format("<table>\n{}{}{}</table>\n", head, answer_rows(report, best),
                      answer_rows(report, worst));
  return part;
}

}  // namespace

std::vector<std::string> report_charts(const RunCurves& curves, double smooth) {
  std::vector<std::string> charts;
  for (const ChartOfMetrics& chart : all_charts()) {
    std::vector<ChartCurve> lines;
    for (const char* metric : chart.metrics)
      if (curves.curves.contains(metric))
        lines.push_back(chart_curve(curves, metric, metric, CurveAxis::step, smooth));
    if (!lines.empty()) charts.push_back(curves_svg({chart.title, "step", chart.unit}, lines));
  }
  return charts;
}

std::vector<size_t> extreme_answers(std::span<const ReportedAnswer> answers, bool best,
                                    size_t most) {
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    const double left = answers[a].score.reward(), right = answers[b].score.reward();
    return best ? left > right : left < right;
  });
  std::vector<size_t> chosen;
  for (const size_t index : order) {
    if (chosen.size() == most) break;
    if (std::ranges::none_of(
            chosen, [&](size_t each) { return answers[each].record == answers[index].record; }))
      chosen.push_back(index);
  }
  return chosen;
}

std::string report_page(const ChessReport& report) {
  const std::string title = svg_text(report.title);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n<style>\n"
      "body{{font:15px/1.5 system-ui,sans-serif;color:#222;margin:2em auto;max-width:1480px;"
      "padding:0 1em}}\n"
      ".charts{{display:grid;grid-template-columns:repeat(auto-fill,minmax(460px,1fr));gap:1em}}\n"
      "svg{{max-width:100%;height:auto}}\n"
      "table{{border-collapse:collapse}}\nth,td{{text-align:left;vertical-align:top;"
      "padding:.2em .8em .2em 0;border-bottom:1px solid #ddd}}\n"
      "code{{font-size:12px;overflow-wrap:anywhere;white-space:pre-wrap}}\n</style>\n</head>\n"
      "<body>\n<h1>{0}</h1>\n<table>\n",
      title);
  for (const auto& [name, value] : report.facts)
    page += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", svg_text(name), svg_text(value));
  page += "</table>\n<h2>Steps</h2>\n";
  if (report.smooth > 0)
    page += fmt::format(
        "<p>Each point is the mean of those before it, with weights that halve every {:g} "
        "points.</p>\n",
        report.smooth);
  page += "<div class=\"charts\">\n";
  for (const std::string& chart : report_charts(report.curves, report.smooth)) page += chart;
  page += "</div>\n";
  if (!report.answers.empty()) page += answers_part(report);
  return page + "</body>\n</html>\n";
}

}  // namespace fullbore::chess
