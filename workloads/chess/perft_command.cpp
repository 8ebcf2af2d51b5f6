#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/base/text.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

struct PerftArguments {
  std::string fen;
  int depth = 0;
  bool divide = false, json = false;
};

ExitCode run_perft(const PerftArguments& arguments) {
  const Position position = position_argument("chess perft", arguments.fen);
  nlohmann::ordered_json by_move = nlohmann::ordered_json::object();
  const auto start = std::chrono::steady_clock::now();
  uint64_t nodes = 0;
  if (arguments.divide && arguments.depth > 0) {
    MoveList moves = legal_moves(position);
    moves.sort();
    for (const Move move : moves) {
      Position after = position;
      make_move(after, move);
      const uint64_t below = perft(after, arguments.depth - 1);
      nodes += below;
      by_move[uci_text(move)] = below;
      if (!arguments.json) print_output("{}: {}\n", uci_text(move), below);
    }
  } else {
    nodes = perft(position, arguments.depth);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double rate = static_cast<double>(nodes) / std::max(seconds, 1e-9);
  if (arguments.json) {
    nlohmann::ordered_json json = {{"fen", fen_text(position)}, {"depth", arguments.depth}};
    if (arguments.divide) json["moves"] = by_move;
    json["nodes"] = nodes;
    json["seconds"] = seconds;
    json["nodes_per_second"] = rate;
    write_output(json_text(json));
  } else {
    print_output("nodes {} in {}: {}/s\n", nodes, duration_text(seconds), count_text(rate));
  }
  return ExitCode::kOk;
}

}  // namespace

void add_perft_command(Command chess) {
  Command command =
      chess.add_subcommand("perft", "Count the leaves of the tree of legal moves, by one thread");
  auto arguments = std::make_shared<PerftArguments>();
  command.add_option("FEN", arguments->fen, "A position, or `start`").required();
  command.add_option("DEPTH", arguments->depth, "In half-moves").required().between(0, 12);
  command.add_flag("--divide", arguments->divide, "Also the leaves below each move");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(R"(
Published counts are the test of a move generator: from the start 20, 400, 8902, 197281, 4865609,
119060324. Moves of the last level are counted, not made.

Example:
  fullbore chess perft start 5
  fullbore chess perft "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1" 4 --divide)");
  command.runs([arguments] { return run_perft(*arguments); });
}

}  // namespace fullbore::chess
