#include <fmt/format.h>

#include <memory>

#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/lab/runs/run_folder.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/chess_model.h"
#include "workloads/chess/policy_step.h"
#include "workloads/chess/report_parts.h"

namespace fullbore::chess {
namespace {

struct ReportArguments {
  std::string run, out;
  int64_t records = 64, samples = 0, seed = 1, boards = 4;
  double temperature = 1, smooth = 4;
  bool force = false;
};

/// The first of what the run held out, or where that is nothing, of what it learned from.
std::vector<ChessRecord> asked_records(const ChessModel& model, int64_t most) {
  const std::shared_ptr<const ChessData> data = open_chess_data(model.config(), model.tokenizer());
  if (data->held_out.size() == 0)
    print_message("chess: nothing is held out: the positions are those of training\n");
  std::vector<ChessRecord> records =
      data->held_out.size() > 0 ? data->held_out.records : data->training.records;
  if (std::ssize(records) > most) records.resize(static_cast<size_t>(most));
  return records;
}

PagePart asked(const ReportArguments& arguments) {
  ChessModel model(arguments.run);
  const RewardOptions options = reward_options(model.config());
  const int64_t samples =
      arguments.samples > 0 ? arguments.samples : chess_keys(model.config()).rollout.samples;
  const std::vector<ChessRecord> records = asked_records(model, arguments.records);
  std::vector<ReportedAnswer> answers;
  std::vector<double> rewards;
  for (ModelAnswer& answer :
       model.answer(records, {.temperature = arguments.temperature,
                             .samples = samples,
                             .seed = static_cast<uint64_t>(arguments.seed)})) {
    const RecordTruth truth = RecordTruth::create(records[answer.prompt], options).take_or_throw();
    answers.push_back({answer.prompt, truth.score(answer.text), std::move(answer.text)});
    rewards.push_back(answers.back().score.reward());
  }
  const std::vector<float> advantages = group_advantages(rewards, static_cast<size_t>(samples),
                                                         policy_options(model.config()).advantage);
  for (size_t i = 0; i < advantages.size(); ++i) answers[i].advantage = advantages[i];
  return answers_part(records, answers, static_cast<size_t>(arguments.boards));
}

ExitCode run_report(const ReportArguments& arguments) {
  const RunFolder run = look_at_run(arguments.run);
  const std::string out = arguments.out.empty() ? run.path + "/report.html" : arguments.out;
  check_output_file(out);
  refuse_existing(out, arguments.force);
  const RunCurves curves = read_run_curves(run.path).take_or_throw();
  for (const std::vector<std::string>& problems : {run.problems, curves.problems})
    for (const std::string& problem : problems) print_message("chess: {}\n", problem);
  std::vector<PagePart> parts = {learning_part(curves, arguments.smooth)};
  if (arguments.records > 0) parts.push_back(asked(arguments));
  write_output_file(out, run_page(run, curves, parts));
  if (out != "-") print_output("written: {}\n", out);
  return ExitCode::kOk;
}

}  // namespace

void add_chess_report_command(Command chess) {
  Command command = chess.add_subcommand("report", "Curves, histograms and boards of a run");
  auto arguments = std::make_shared<ReportArguments>();
  command.add_option("RUN", arguments->run, "The folder of a run").required();
  command.add_option("-o,--out", arguments->out, "The page; by default report.html of the run");
  command.add_flag("--force", arguments->force, "Replace a page that is there");
  command
      .add_option("--records", arguments->records,
                  "Positions that the last checkpoint is asked, of those held out; 0: none")
      .between(int64_t{0}, int64_t{100000})
      .shows_default();
  command
      .add_option("--samples", arguments->samples,
                  "Answers to each; by default as many as the run has in a group")
      .between(int64_t{1}, int64_t{1024});
  command.add_option("--temperature", arguments->temperature, "Of the answers")
      .between(0.0, 10.0)
      .shows_default();
  command.add_option("--seed", arguments->seed, "Of the draws")
      .between(int64_t{0}, int64_t{1} << 62)
      .shows_default();
  command
      .add_option("--boards", arguments->boards,
                  "Best answers that are shown with their boards, and as many worst ones")
      .between(int64_t{1}, int64_t{64})
      .shows_default();
  command
      .add_option("--smooth", arguments->smooth,
                  "Mean of earlier values, whose weights halve every so many points")
      .between(0.0, 1e6)
      .shows_default();
  command.footer(R"(
One page of HTML without script: rewards by task, legality, best moves, the way from the reference, entropy and lengths, and
behind them what `runs show --html` has. Histograms and boards are of answers that the last checkpoint is asked for.

Example:
  fullbore chess report runs/chess-grpo-xs-1
  fullbore chess report runs/chess-grpo-xs-1 --records 0 --smooth 20 -o curves.html)");
  command.runs([arguments] { return run_report(*arguments); });
}

}  // namespace fullbore::chess
