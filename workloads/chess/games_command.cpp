#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/pgn_reader.h"
#include "workloads/chess/san.h"

namespace fullbore::chess {
namespace {

struct GamesArguments {
  std::vector<std::string> files;
  bool json = false;
};

std::string game_json(const PgnGame& game) {
  nlohmann::ordered_json tags = nlohmann::ordered_json::object();
  for (const auto& [name, value] : game.tags) tags[name] = value;
  nlohmann::ordered_json moves = nlohmann::ordered_json::array(), san = moves;
  Position position = game.start;
  for (const PgnMove& each : game.moves) {
    moves.push_back(uci_text(each.move));
    san.push_back(san_text(position, each.move));
    make_move(position, each.move);
  }
  nlohmann::ordered_json json = {
      {"line", game.line},        {"tags", tags}, {"start", fen_text(game.start)},
      {"moves", moves},           {"san", san},   {"result", game.result},
      {"end", fen_text(position)}};
  if (!game.problem.empty()) json["problem"] = game.problem;
  return json_text(json, -1);
}

ExitCode run_games(const GamesArguments& arguments) {
  int64_t games = 0, half_moves = 0, problems = 0;
  std::map<std::string, int64_t> results;
  for (const std::string& path : arguments.files) {
    PgnReader reader = PgnReader::open(path).take_or_throw();
    PgnGame game;
    while (reader.next(game).take_or_throw()) {
      ++games;
      half_moves += std::ssize(game.moves);
      problems += game.problem.empty() ? 0 : 1;
      ++results[game.result];
      if (arguments.json)
        write_output(game_json(game));
      else if (!game.problem.empty())
        print_output("{}\n", game.problem);
    }
  }
  if (!arguments.json) {
    print_output("{} games, {} half-moves, {} with a problem\n", games, half_moves, problems);
    for (const auto& [result, count] : results) print_output("{:>8} {}\n", count, result);
  }
  return problems == 0 ? ExitCode::kOk : ExitCode::kData;
}

}  // namespace

void add_games_command(Command chess) {
  Command command = chess.add_subcommand("games", "Check the games of PGN files and count them");
  auto arguments = std::make_shared<GamesArguments>();
  command.add_option("FILE", arguments->files, "PGN, UTF-8 or Latin-1").required();
  command.add_flag(
      "--json", arguments->json,
      "Print a line of JSON a game: tags, moves as UCI and SAN have them, first and last FEN");
  command.footer(R"(
Main lines are played by the rules; variations, comments and NAGs are read over. A game with a problem
is named with its line, the others are read on; the exit code is then 3.

Example:
  fullbore chess games games.pgn
  fullbore chess games puzzles.pgn --json)");
  command.runs([arguments] { return run_games(*arguments); });
}

}  // namespace fullbore::chess
