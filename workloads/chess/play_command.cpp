#include <charconv>
#include <memory>

#include "fullbore/app/output.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/chess_model.h"
#include "workloads/chess/input_lines.h"
#include "workloads/chess/uci_player.h"

namespace fullbore::chess {
namespace {

struct PlayArguments {
  std::string run, format;
  double temperature = 0;
  int64_t seed = 1;
  bool legal_moves = false;
};

/// A setting of a window: hundredths of a temperature.
std::string set_temperature(std::string_view value, double& temperature) {
  int64_t hundredths = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), hundredths);
  if (error != std::errc() || end != value.data() + value.size() || hundredths < 0 ||
      hundredths > 1000)
    return "Temperature is a whole number of hundredths, 0 to 1000";
  temperature = static_cast<double>(hundredths) / 100;
  return "";
}

ExitCode run_play(const PlayArguments& arguments) {
  ChessModel model(arguments.run, 1);
  const RecordFormat format = model.format(arguments.format);
  CompletionOptions options{.temperature = arguments.temperature,
                            .seed = static_cast<uint64_t>(arguments.seed),
                            .legal_moves = arguments.legal_moves};
  UciPlayer player;
  player.name = "Fullbore " + model.path();
  player.options = {{"Temperature", "spin default 0 min 0 max 1000", [&](std::string_view value) {
                       return set_temperature(value, options.temperature);
                     }}};
  player.move = [&](const Game& game) {
    ++options.round;
    const Position positions[] = {game.position()};
    return model.best_moves(positions, format, options).front();
  };
  UciFront front(std::move(player), [](std::string_view text) {
    write_output(text);
    flush_output();
  });
  InputLines input;
  while (input.next() && front.answer(input.line())) {
  }
  return ExitCode::kOk;
}

}  // namespace

void add_chess_play_command(Command chess) {
  Command command = chess.add_subcommand(
      "play", "Play by a model, as an engine that chess windows talk to (UCI)");
  auto arguments = std::make_shared<PlayArguments>();
  command.add_option("RUN", arguments->run, "A run, a checkpoint, or a folder of weights")
      .required();
  command
      .add_option("--format", arguments->format,
                  "How positions are asked: as the records that the run was trained on")
      .one_of({"endgames", "games", "published"});
  command
      .add_option("--temperature", arguments->temperature,
                  "Of its answers; 0: the likeliest token each time")
      .between(0.0, 10.0)
      .shows_default();
  command.add_option("--seed", arguments->seed, "Of the draws")
      .between(int64_t{0}, int64_t{1} << 62)
      .shows_default();
  command.add_flag("--legal-moves", arguments->legal_moves, "Draw moves from legal ones alone");
  command.footer(R"(
Reads commands of the Universal Chess Interface from standard input until `quit`. In a chess window, add an engine with
this command line. Where the model answers with no legal move, the first legal one is played, and an `info string` says so.

Example:
  printf 'position startpos moves e2e4\ngo\nquit\n' | fullbore chess play runs/chess-warmup-xs)");
  command.runs([arguments] { return run_play(*arguments); });
}

}  // namespace fullbore::chess
