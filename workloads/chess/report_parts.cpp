#include "workloads/chess/report_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

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
      {"Legality",
       "share of answers",
       {"policy/format", "policy/legal_best", "policy/legal_moves"}},
      {"Best move", "share of answers", {"policy/best_move", "policy/top_moves"}},
      {"Environment", "share of answers", {"arbiter/format", "arbiter/exact", "arbiter/core"}},
      {"Way from the reference", "nats a token", {"kl"}},
      {"Entropy", "nats a token", {"entropy"}},
      {"Length of completions", "tokens", {"completion_tokens"}},
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

std::string answer_rows(std::span<const ChessRecord> records,
                        std::span<const ReportedAnswer> answers, std::span<const size_t> chosen) {
  std::string rows;
  for (const size_t index : chosen) {
    const ReportedAnswer& answer = answers[index];
    rows += fmt::format(
        "<tr><td class=\"whole\">{:.3f}</td><td class=\"whole\">{:+.2f}</td><td "
        "class=\"whole\">{}</td><td><code>{}</code></td>"
        "<td><code>{}</code></td></tr>\n",
        answer.score.reward(), answer.advantage, svg_text(answered_move(answer)),
        svg_text(records[answer.record].prompt), svg_text(answer.text));
  }
  return rows;
}

}  // namespace

PagePart learning_part(const RunCurves& curves, double smooth) {
  std::string html;
  if (smooth > 0)
    html += fmt::format(
        "<p>Each point is the mean of those before it, with weights that halve every {:g} "
        "points.</p>\n",
        smooth);
  html += "<div class=\"curves\">\n";
  for (const ChartOfMetrics& chart : all_charts()) {
    std::vector<ChartCurve> lines;
    for (const char* metric : chart.metrics)
      if (curves.curves.contains(metric))
        lines.push_back(chart_curve(curves, metric, metric, CurveAxis::step, smooth));
    if (!lines.empty()) html += curves_svg({chart.title, "step", chart.unit}, lines);
  }
  return {"Learning", html + "</div>\n"};
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

PagePart answers_part(std::span<const ChessRecord> records, std::span<const ReportedAnswer> answers,
                      size_t shown) {
  std::vector<double> rewards, advantages;
  for (const ReportedAnswer& answer : answers) {
    rewards.push_back(answer.score.reward());
    advantages.push_back(answer.advantage);
  }
  const std::vector<size_t> best = extreme_answers(answers, true, shown);
  const std::vector<size_t> worst = extreme_answers(answers, false, shown);
  std::vector<BoardDrawing> boards;
  for (const auto* chosen : {&best, &worst})
    for (const size_t index : *chosen)
      boards.push_back(board_of(records[answers[index].record], answers[index]));
  std::string html = fmt::format(
      "<p>{} answers to {} positions, drawn anew.</p>\n<div class=\"curves\">\n{}{}</div>\n",
      answers.size(), records.size(), histogram_svg({"Rewards", "reward", "answers"}, rewards),
      histogram_svg({"Advantages within groups", "advantage", "answers"}, advantages));
  html += fmt::format(
      "<p>Best answers, and worst ones below. Arrows: <b style=\"color:{}\">the truth's first "
      "move</b>, <b style=\"color:{}\">another that was answered</b>, <b style=\"color:{}\">one "
      "that is illegal</b>.</p>\n{}",
      kRight, kLegal, kIllegal, boards_svg(boards, static_cast<int>(best.size())));
  html += fmt::format(
      "<table>\n<tr><th>reward</th><th>advantage</th><th>move</th><th>prompt</th><th>answer</th>"
      "</tr>\n{}{}</table>\n",
      answer_rows(records, answers, best), answer_rows(records, answers, worst));
  return {"Answers of the last checkpoint", std::move(html)};
}

}  // namespace fullbore::chess
