#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/excerpt.h"
#include "workloads/chess/board_picture.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/game.h"
#include "workloads/chess/input_lines.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/position_text.h"

namespace fullbore::chess {
namespace {

struct MovesArguments {
  std::string fen;
  std::vector<std::string> moves;
  std::string en_passant = "legal";
  std::string svg;
  bool json = false, force = false;
};

std::vector<std::string> move_texts(const Position& position) {
  MoveList moves = legal_moves(position);
  moves.sort();
  std::vector<std::string> texts;
  for (const Move move : moves) texts.push_back(uci_text(move));
  return texts;
}

std::string game_json(const Game& game, EnPassantField field) {
  const DrawClaims claims = game.claims();
  const nlohmann::ordered_json json = {{"fen", fen_text(game.position(), field)},
                                       {"moves", move_texts(game.position())},
                                       {"check", in_check(game.position())},
                                       {"result", result_name(game.result())},
                                       {"fifty_moves", claims.fifty_moves},
                                       {"threefold_repetition", claims.threefold_repetition}};
  return json_text(json, -1);
}

void print_game(const Game& game, EnPassantField field) {
  const Position& position = game.position();
  print_output("{}{}\n", board_text(position), fen_text(position, field));
  const GameResult result = game.result();
  const DrawClaims claims = game.claims();
  print_output("{} to move{}; {}{}{}\n", position.to_move == Side::kWhite ? "White" : "Black",
               in_check(position) ? ", in check" : "", result_name(result),
               claims.fifty_moves ? "; a draw by 50 moves may be claimed" : "",
               claims.threefold_repetition ? "; a draw by repetition may be claimed" : "");
  const std::vector<std::string> moves = move_texts(position);
  print_output("{} legal moves{}{}\n", moves.size(), moves.empty() ? "" : ": ",
               fmt::join(moves, " "));
}

// Plays a move, or says why not.
std::string play(Game& game, std::string_view move) {
  if (game.play(move)) return {};
  return fmt::format("'{}' is {} in {}", excerpt(move),
                     parse_uci_move(move) ? "not legal" : "no move such as e2e4 or e7e8q",
                     fen_text(game.position()));
}

// "FEN [MOVE...]" of a line, or what is wrong with it.
std::string read_game(std::string_view line, Game& game) {
  size_t end = 0;
  for (int field = 0; field < 6 && end != std::string_view::npos; ++field)
    end = line.find(' ', end + (field > 0 ? 1 : 0));
  const std::string_view fen = line.substr(0, end);
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return describe_fen_error(error, fen);
  game = Game(position);
  while (end != std::string_view::npos) {
    line.remove_prefix(end + 1);
    end = line.find(' ');
    if (std::string problem = play(game, line.substr(0, end)); !problem.empty()) return problem;
  }
  return {};
}

ExitCode run_lines(EnPassantField field) {
  bool all = true;
  for (InputLines input; input.next();) {
    Game game;
    const std::string problem = read_game(input.line(), game);
    all &= problem.empty();
    write_output(problem.empty() ? game_json(game, field)
                                 : json_text(nlohmann::ordered_json{{"invalid", problem}}, -1));
  }
  return all ? ExitCode::kOk : ExitCode::kData;
}

ExitCode run_moves(const MovesArguments& arguments) {
  const EnPassantField field = en_passant_field(arguments.en_passant);
  if (!arguments.svg.empty() && arguments.svg != "-") {
    check_output_file(arguments.svg);
    refuse_existing(arguments.svg, arguments.force);
  }
  if (arguments.fen == "-") {
    if (!arguments.svg.empty()) throw UsageError("chess moves: --svg is of one position");
    if (!arguments.moves.empty())
      throw UsageError("chess moves: moves stand in the lines of standard input, behind each FEN");
    return run_lines(field);
  }
  Game game(position_argument("chess moves", arguments.fen));
  for (const std::string& move : arguments.moves)
    if (std::string problem = play(game, move); !problem.empty())
      throw UsageError("chess moves: " + problem);
  if (!arguments.svg.empty()) {
    BoardDrawing drawing{game.position()};
    drawing.caption =
        fmt::format("{} to move; {}", drawing.position.to_move == Side::kWhite ? "White" : "Black",
                    result_name(game.result()));
    if (!game.moves().empty()) drawing.arrows.push_back({game.moves().back()});
    write_output_file(arguments.svg, boards_svg({{drawing}}));
  }
  if (arguments.json)
    write_output(game_json(game, field));
  else
    print_game(game, field);
  return ExitCode::kOk;
}

}  // namespace

void add_moves_command(Command chess) {
  Command command = chess.add_subcommand(
      "moves", "Show a position, its legal moves and whether the game is over");
  auto arguments = std::make_shared<MovesArguments>();
  command
      .add_option("FEN", arguments->fen,
                  "A position in quotes, `start`, or `-` for lines of standard input")
      .required();
  command.add_option("MOVE", arguments->moves, "Played first, such as e2e4, e1g1 or e7e8q");
  add_en_passant_option(command, arguments->en_passant);
  command.add_flag("--json", arguments->json, "Print JSON, one line");
  command.add_option("--svg", arguments->svg, "Draw the board and the last move into this file");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Repetitions count from FEN on. Checkmate, stalemate, insufficient material, 75 moves and the fifth
repetition end a game; a draw by 50 moves or the third repetition may be claimed. An illegal move ends
the command with code 2.

With `-` each line is a FEN and perhaps moves, and each gets a line of JSON; of a line that is none it
holds `invalid`, and the exit code is 3.

Example:
  fullbore chess moves start f2f3 e7e5 g2g4 d8h4
  fullbore chess moves "5k2/5P2/4K3/8/8/8/8/8 w - - 5 70" e6f6 --json
  fullbore chess moves start e2e4 c7c5 --svg sicilian.svg
  fullbore chess moves - < positions.txt)");
  command.runs([arguments] { return run_moves(*arguments); });
}

}  // namespace fullbore::chess
