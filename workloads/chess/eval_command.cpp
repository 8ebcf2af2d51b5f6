#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "workloads/chess/answer_report.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/chess_keys.h"
#include "workloads/chess/chess_model.h"
#include "workloads/chess/policy_step.h"
#include "workloads/chess/record_file.h"
#include "workloads/chess/self_play.h"

namespace fullbore::chess {
namespace {

struct EvalArguments {
  std::string run, data, puzzles, format;
  int64_t records = 200, rows = 64, games = 0, samples = 1;
  double temperature = 1;
  int64_t seed = 1;
  bool json = false, legal_moves = false;
};

/// The first of what the run held out, or of the file.
std::vector<ChessRecord> asked_records(const EvalArguments& arguments, const ChessModel& model) {
  std::vector<ChessRecord> records =
      arguments.data.empty() ? open_chess_data(model.config(), model.tokenizer())->held_out.records
                             : read_all_records(arguments.data).take_or_throw();
  if (records.empty())
    throw UsageError(
        fmt::format("{} held nothing out (data.validation_fraction): name records by --data FILE",
                    arguments.run));
  if (std::ssize(records) > arguments.records)
    records.resize(static_cast<size_t>(arguments.records));
  return records;
}

AnswerReport report_at(const EvalArguments& arguments, ChessModel& model,
                       const std::vector<ChessRecord>& records, double temperature) {
  const RewardOptions options = reward_options(model.config());
  std::vector<ScoredAnswer> answers;
  for (const ModelAnswer& answer :
       model.answer(records, {.temperature = temperature,
                             .samples = temperature > 0 ? arguments.samples : 1,
                             .seed = static_cast<uint64_t>(arguments.seed),
                             .legal_moves = arguments.legal_moves})) {
    const RecordTruth truth = RecordTruth::create(records[answer.prompt], options).take_or_throw();
    answers.push_back({truth.score(answer.text), answer.text});
  }
  return answer_report(records, answers, options);
}

std::string temperature_text(double temperature) {
  return temperature == 0 ? "greedy" : fmt::format("temperature {}", temperature);
}

void evaluate_records(const EvalArguments& arguments, ChessModel& model,
                      nlohmann::ordered_json& json) {
  const std::vector<ChessRecord> records = asked_records(arguments, model);
  std::vector<double> temperatures = {0};
  if (arguments.temperature > 0) temperatures.push_back(arguments.temperature);
  for (const double temperature : temperatures) {
    const AnswerReport report = report_at(arguments, model, records, temperature);
    if (arguments.json) {
      nlohmann::ordered_json part = {{"temperature", temperature}};
      part.update(answer_json(report));
      json["answers"].push_back(std::move(part));
    } else {
      print_output("{}\n{}", temperature_text(temperature), answer_table(report));
    }
  }
}

MoveProposer proposer(const EvalArguments& arguments, ChessModel& model) {
  const auto round = std::make_shared<uint32_t>(0);
  return [&arguments, &model, round,
          format = model.format(arguments.format)](std::span<const Position> positions) {
    return model.best_moves(positions, format,
                            {.temperature = arguments.temperature,
                             .seed = static_cast<uint64_t>(arguments.seed),
                             .round = (*round)++,
                             .legal_moves = arguments.legal_moves});
  };
}

void evaluate_games(const EvalArguments& arguments, ChessModel& model,
                    nlohmann::ordered_json& json) {
  const std::vector<Position> starts(static_cast<size_t>(arguments.games), start_position());
  const SelfPlayCounts counts =
      play_games(starts, proposer(arguments, model), {.games_at_once = arguments.rows});
  json["self_play"] = {{"games", counts.games},
                       {"half_moves", counts.half_moves},
                       {"illegal_moves", counts.illegal_moves},
                       {"white_wins", counts.white_wins},
                       {"black_wins", counts.black_wins},
                       {"draws", counts.draws},
                       {"unfinished", counts.unfinished},
                       {"mean_length", counts.mean_length()}};
  if (!arguments.json)
    print_output(
        "self-play  {} games of {:.1f} half-moves; {:.2f} % of moves illegal; {} won by "
        "White, {} by Black, {} drawn\n",
        counts.games, counts.mean_length(), 100 * counts.illegal_share(), counts.white_wins,
        counts.black_wins, counts.draws);
}

void evaluate_puzzles(const EvalArguments& arguments, ChessModel& model,
                      nlohmann::ordered_json& json) {
  std::vector<Puzzle> puzzles;
  PgnReader reader = PgnReader::open(arguments.puzzles).take_or_throw();
  PgnGame game;
  while (reader.next(game).take_or_throw())
    if (std::optional<Puzzle> puzzle = puzzle_of(game)) puzzles.push_back(std::move(*puzzle));
  if (puzzles.empty())
    throw DataError(fmt::format("{}: no game has a FEN tag and moves", arguments.puzzles));
  const PuzzleScore score = score_puzzles(puzzles, proposer(arguments, model));
  json["puzzles"] = {{"puzzles", score.puzzles},
                     {"solved", score.solved},
                     {"first_move", score.first_move},
                     {"illegal_moves", score.illegal_moves}};
  if (!arguments.json)
    print_output("puzzles    {} of {} solved, the first move of {}; {} illegal moves\n",
                 score.solved, score.puzzles, score.first_move, score.illegal_moves);
}

ExitCode run_eval(const EvalArguments& arguments) {
  ChessModel model(arguments.run, arguments.rows);
  nlohmann::ordered_json json = {{"model", model.path()}};
  if (arguments.legal_moves) {
    json["legal_moves"] = true;
    if (!arguments.json)
      print_output("moves are drawn from legal ones: their legality says nothing of the model\n");
  }
  if (arguments.records > 0) evaluate_records(arguments, model, json);
  if (arguments.games > 0) evaluate_games(arguments, model, json);
  if (!arguments.puzzles.empty()) evaluate_puzzles(arguments, model, json);
  if (arguments.json) write_output(json_text(json));
  return ExitCode::kOk;
}

}  // namespace

void add_chess_eval_command(Command chess) {
  Command command = chess.add_subcommand("eval", "Measure a model of chess records");
  auto arguments = std::make_shared<EvalArguments>();
  command.add_option("RUN", arguments->run, "A run, a checkpoint, or a folder of weights")
      .required();
  command.add_option("--data", arguments->data,
                     "Records to ask (chess prepare); otherwise those that the run held out");
  command.add_option("--records", arguments->records, "The first so many; 0: none")
      .between(int64_t{0}, int64_t{1000000})
      .shows_default();
  command
      .add_option("--temperature", arguments->temperature,
                  "Of drawn answers, beside the likeliest ones; 0: the latter alone")
      .between(0.0, 10.0)
      .shows_default();
  command.add_option("--samples", arguments->samples, "Answers to each record, drawn ones")
      .between(int64_t{1}, int64_t{1024})
      .shows_default();
  command.add_option("--self-play", arguments->games, "Games against itself from the start")
      .between(int64_t{0}, int64_t{100000})
      .shows_default();
  command.add_option("--puzzles", arguments->puzzles, "A PGN file of games with FEN tags");
  command
      .add_option("--format", arguments->format,
                  "How games and puzzles are asked: as the records that the run was trained on")
      .one_of({"endgames", "games", "published"});
  command.add_option("--rows", arguments->rows, "Answers made side by side")
      .between(int64_t{1}, int64_t{4096})
      .shows_default();
  command.add_option("--seed", arguments->seed, "Of the draws")
      .between(int64_t{0}, int64_t{1} << 62)
      .shows_default();
  command.add_flag("--legal-moves", arguments->legal_moves,
                   "Draw moves from legal ones alone: what is told of legality says nothing then");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Beside each mean stands what a model without any knowledge of the position would reach: the position of the prompt as
its own answer, and one move for all positions. Self-play and puzzles are played at --temperature.

Example:
  fullbore chess eval runs/chess-grpo-xs
  fullbore chess eval runs/chess-grpo-xs --records 1000 --temperature 1 --json)");
  command.runs([arguments] { return run_eval(*arguments); });
}

}  // namespace fullbore::chess
