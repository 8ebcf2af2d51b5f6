#include "workloads/chess/answer_report.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace fullbore::chess {
namespace {

using Json = nlohmann::ordered_json;

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

/// A column of values, one an answer, with the name of its mean.
struct Column {
  const char* name;
  const char* key;
  bool is_share;
  std::vector<double> values;
};

void add_columns(TaskReport& report, const std::vector<Column>& columns) {
  std::vector<std::vector<double>> values;
  for (const Column& column : columns) values.push_back(column.values);
  if (report.answers == 0) return;
  constexpr int64_t kResamples = 2000;
  const std::vector<MeanInterval> intervals = mean_intervals(values, {.resamples = kResamples});
  for (size_t i = 0; i < columns.size(); ++i)
    report.rows.push_back({columns[i].name, columns[i].key, intervals[i], columns[i].is_share});
}

void add_value(TaskReport& report, const char* name, const char* key, double value, bool is_share) {
  report.rows.push_back({name, key, {value, value, value}, is_share});
}

TaskReport policy_report(std::span<const ScoredAnswer> answers, const PolicyBaselines& constant) {
  TaskReport report;
  std::vector<Column> columns = {{"reward", "reward", false, {}},
                                 {"format", "format", true, {}},
                                 {"best move legal", "legal_best", true, {}},
                                 {"listed moves legal", "legal_moves", true, {}},
                                 {"best move right", "best_move", true, {}},
                                 {"best move among the top", "top_moves", true, {}}};
  for (const ScoredAnswer& answer : answers) {
    if (answer.score.task != ChessTask::policy) continue;
    ++report.answers;
    const PolicyScore& score = answer.score.policy;
    const std::array<double, 6> values = {score.reward,
                                          static_cast<double>(score.format_valid),
                                          static_cast<double>(score.best_legal),
                                          score.legal_share,
                                          static_cast<double>(score.best_is_first),
                                          static_cast<double>(score.best_in_top)};
    for (size_t i = 0; i < values.size(); ++i) columns[i].values.push_back(values[i]);
  }
  if (report.answers == 0) return report;
  add_columns(report, columns);
  const PolicyMeasures measures = measure_policy(answers);
  add_value(report, "error of evaluations, pawns", "eval_error", measures.eval_error, false);
  add_value(report, "different best moves, of 200", "distinct_best", measures.distinct_best, true);
  add_value(report, "different answers", "unique_completions", measures.unique_completions, true);
  report.rows[0].beside =
      fmt::format("always {}: {:.3f}", constant.always.move, constant.always.reward);
  report.rows[2].beside =
      fmt::format("always {}: {}; one move for each side: {}", constant.always.move,
                  percent(constant.always.legal), percent(constant.by_colour));
  return report;
}

TaskReport arbiter_report(std::span<const ScoredAnswer> answers, const CopyBaseline& copy) {
  TaskReport report;
  std::vector<Column> columns = {
      {"reward", "reward", false, {}},           {"format", "format", true, {}},
      {"position exact", "exact", true, {}},     {"first four fields exact", "core", true, {}},
      {"similarity", "similarity", true, {}},    {"flags right", "flags", true, {}},
      {"reward right", "reward_right", true, {}}};
  for (const ScoredAnswer& answer : answers) {
    if (answer.score.task != ChessTask::arbiter) continue;
    ++report.answers;
    const ArbiterScore& score = answer.score.arbiter;
    const std::array<double, 7> values = {
        score.reward,
        static_cast<double>(score.format_valid),
        static_cast<double>(score.exact),
        static_cast<double>(score.core),
        score.similarity,
        static_cast<double>(score.terminated_right && score.truncated_right),
        static_cast<double>(score.reward_right)};
    for (size_t i = 0; i < values.size(); ++i) columns[i].values.push_back(values[i]);
  }
  if (report.answers == 0) return report;
  add_columns(report, columns);
  add_value(report, "different answers", "unique_completions",
            measure_arbiter(answers).unique_completions, true);
  report.rows[0].beside = fmt::format("the prompt's position copied: {:.3f}", copy.reward);
  report.rows[2].beside = fmt::format("copied: {}", percent(copy.exact));
  report.rows[4].beside = fmt::format("copied: {}", percent(copy.similarity));
  return report;
}

std::string number(double value, bool is_share) {
  return is_share ? percent(value) : fmt::format("{:.3f}", value);
}

std::string task_table(const char* task, const TaskReport& report, RewardScheme scheme) {
  if (report.answers == 0) return "";
  std::string text =
      fmt::format("{}: {} answers, scheme {}\n", task, report.answers, reward_scheme_name(scheme));
  for (const AnswerRow& row : report.rows) {
    const bool is_certain = row.value.low == row.value.high;
    const std::string range = is_certain
                                  ? ""
                                  : fmt::format("{} to {}", number(row.value.low, row.is_share),
                                                number(row.value.high, row.is_share));
    std::string line = fmt::format("  {:<28}{:>9}  {:<20}{}", row.name,
                                   number(row.value.mean, row.is_share), range, row.beside);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

Json task_json(const TaskReport& report) {
  Json json = {{"answers", report.answers}};
  for (const AnswerRow& row : report.rows) {
    json[row.key] = row.value.mean;
    if (row.value.low != row.value.high)
      json[std::string(row.key) + "_interval"] = {row.value.low, row.value.high};
  }
  return json;
}

Json constant_json(const ConstantMove& constant) {
  return {{"move", constant.move}, {"legal", constant.legal}, {"reward", constant.reward}};
}

}  // namespace

AnswerReport answer_report(std::span<const ChessRecord> records,
                           std::span<const ScoredAnswer> answers, const RewardOptions& options) {
  AnswerReport report;
  report.scheme = options.scheme;
  report.constant = policy_baselines(records, options);
  report.copy = copy_baseline(records, options);
  report.policy = policy_report(answers, report.constant);
  report.arbiter = arbiter_report(answers, report.copy);
  return report;
}

std::string answer_table(const AnswerReport& report) {
  return task_table("P", report.policy, report.scheme) +
         task_table("A", report.arbiter, report.scheme);
}

Json answer_json(const AnswerReport& report) {
  Json json = {{"scheme", reward_scheme_name(report.scheme)}};
  if (report.policy.answers > 0) json["policy"] = task_json(report.policy);
  if (report.arbiter.answers > 0) json["arbiter"] = task_json(report.arbiter);
  json["baselines"] = baseline_json(report.constant, report.copy);
  return json;
}

std::string baseline_table(const PolicyBaselines& constant, const CopyBaseline& copy) {
  std::string text;
  if (constant.positions > 0)
    text += fmt::format(
        "P always answered by {}: legal in {}, reward {:.3f}; by {} for White and {} for Black: "
        "legal "
        "in {}\n",
        constant.always.move, percent(constant.always.legal), constant.always.reward,
        constant.white.move.empty() ? "-" : constant.white.move,
        constant.black.move.empty() ? "-" : constant.black.move, percent(constant.by_colour));
  if (copy.answers > 0)
    text += fmt::format("A answered by the prompt's position: {} exact, reward {:.3f}\n",
                        percent(copy.exact), copy.reward);
  return text;
}

Json baseline_json(const PolicyBaselines& constant, const CopyBaseline& copy) {
  Json json = Json::object();
  if (constant.positions > 0)
    json["constant_move"] = {{"positions", constant.positions},
                             {"always", constant_json(constant.always)},
                             {"white", constant_json(constant.white)},
                             {"black", constant_json(constant.black)},
                             {"by_colour_legal", constant.by_colour}};
  if (copy.answers > 0)
    json["copied_position"] = {{"answers", copy.answers},
                               {"reward", copy.reward},
                               {"exact", copy.exact},
                               {"similarity", copy.similarity}};
  return json;
}

Json score_json(const RecordScore& score) {
  if (score.task == ChessTask::policy) {
    const PolicyScore& policy = score.policy;
    return {{"task", "P"},
            {"reward", policy.reward},
            {"format", policy.format_valid},
            {"best", policy.best},
            {"candidates", policy.candidates},
            {"evals", policy.evals},
            {"legal_best", policy.best_legal},
            {"legal_moves", policy.legal_share},
            {"best_move", policy.best_is_first},
            {"top_moves", policy.best_in_top}};
  }
  const ArbiterScore& arbiter = score.arbiter;
  return {{"task", "A"},
          {"reward", arbiter.reward},
          {"format", arbiter.format_valid},
          {"fen", arbiter.fen},
          {"flags", arbiter.flags},
          {"reward_score", arbiter.reward_score},
          {"exact", arbiter.exact},
          {"core", arbiter.core},
          {"similarity", arbiter.similarity}};
}

}  // namespace fullbore::chess
