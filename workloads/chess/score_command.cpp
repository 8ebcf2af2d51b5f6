#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/data/text_lines.h"
#include "workloads/chess/answer_report.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/record_file.h"

namespace fullbore::chess {
namespace {

struct ScoreArguments {
  std::string file, scheme = "weighted", fen_scaling = "exponential", eval_scaling = "linear", each;
  std::string illegal_reward = "-1";
  bool own_completion = false, force = false, json = false;
};

RewardOptions reward_options(const ScoreArguments& arguments) {
  RewardOptions options;
  options.scheme = *parse_reward_scheme(arguments.scheme);
  options.fen_scaling = *parse_score_scaling(arguments.fen_scaling);
  options.eval_scaling = *parse_score_scaling(arguments.eval_scaling);
  options.illegal_reward = arguments.illegal_reward == "0" ? 0 : -1;
  return options;
}

/// Calls `take` with every record of the file and its answer.
void read_answers(const ScoreArguments& arguments,
                  const std::function<Status(AnsweredRecord&&)>& take) {
  if (arguments.own_completion) {
    read_records(arguments.file, {}, [&](ChessRecord&& record) {
      std::string answer = record.completion;
      return take({std::move(record), std::move(answer)});
    }).take_or_throw();
    return;
  }
  TextLines lines(InputBytes::open(arguments.file).take_or_throw());
  while (lines.next().take_or_throw()) {
    if (trimmed(lines.line()).empty()) continue;
    Result<AnsweredRecord> answered = parse_answered_line(lines.line());
    if (!answered.ok()) throw DataError(lines.failure(answered.error()).message);
    if (const Status taken = take(std::move(answered).value()); !taken.ok())
      throw DataError(lines.failure(taken.error()).message);
  }
}

ExitCode run_score(const ScoreArguments& arguments) {
  const RewardOptions options = reward_options(arguments);
  if (!arguments.each.empty()) {
    check_output_file(arguments.each);
    refuse_existing(arguments.each, arguments.force);
  }
  std::vector<ChessRecord> records;
  std::vector<ScoredAnswer> answers;
  std::string rows;
  read_answers(arguments, [&](AnsweredRecord&& answered) -> Status {
    const Result<RecordTruth> truth = RecordTruth::create(answered.record, options);
    if (!truth.ok()) return Failure{truth.error()};
    answers.push_back({truth.value().score(answered.answer), std::move(answered.answer)});
    if (!arguments.each.empty()) rows += json_text(score_json(answers.back().score), -1);
    // Several answers to one prompt stand one behind the other.
    if (records.empty() || records.back().prompt != answered.record.prompt)
      records.push_back(std::move(answered.record));
    return success();
  });
  if (answers.empty()) throw DataError(fmt::format("{}: there is no answer", arguments.file));
  const AnswerReport report = answer_report(records, answers, options);
  if (!arguments.each.empty()) write_output_file(arguments.each, rows);
  if (arguments.json)
    write_output(json_text(answer_json(report)));
  else
    print_output("{}", answer_table(report));
  return ExitCode::kOk;
}

}  // namespace

void add_score_command(Command chess) {
  Command command = chess.add_subcommand("score", "Score answers to records by any scheme");
  auto arguments = std::make_shared<ScoreArguments>();
  const std::vector<std::string> scalings = {"linear", "exponential", "sigmoid", "quadratic"};
  command
      .add_option("FILE", arguments->file,
                  "Lines of JSON: records (chess prepare) with one more field, \"answer\"")
      .required();
  command
      .add_option("--scheme", arguments->scheme,
                  "weighted, graduated, additive, rank_decay or cliff; or its letter W, G, S, R, C")
      .one_of({"weighted", "graduated", "additive", "rank_decay", "cliff", "W", "G", "S", "R", "C"})
      .shows_default();
  command.add_option("--fen-scaling", arguments->fen_scaling, "Of the similarity of A's position")
      .one_of(scalings)
      .shows_default();
  command.add_option("--eval-scaling", arguments->eval_scaling, "Of P's evaluations")
      .one_of(scalings)
      .shows_default();
  command
      .add_option("--illegal-reward", arguments->illegal_reward,
                  "What A has to answer for an illegal move")
      .one_of({"-1", "0"})
      .shows_default();
  command.add_flag(
      "--own-completion", arguments->own_completion,
      "Score each record's own completion: what can be reached; corpora may be read too");
  command.add_option("--each", arguments->each,
                     "Also a file with every field of each answer's score");
  command.add_flag("--force", arguments->force, "Replace that file");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
A mean reward says little alone: A answered by the prompt's own position earns 0.9, and one move for all positions
can be legal in half of them. Both are told beside the means; ranges are of 95 %.

Example:
  fullbore chess score answers.jsonl
  fullbore chess score answers.jsonl --scheme cliff --each scores.jsonl --json)");
  command.runs([arguments] { return run_score(*arguments); });
}

}  // namespace fullbore::chess
