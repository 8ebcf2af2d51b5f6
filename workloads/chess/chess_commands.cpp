#include "workloads/chess/chess_commands.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"

namespace fullbore::chess {

Position position_argument(std::string_view command, const std::string& text) {
  if (text == "start") return start_position();
  Position position;
  if (const FenError error = parse_fen(text, position); error != FenError::kNone)
    throw UsageError(fmt::format("{}: FEN: {}", command, describe_fen_error(error, text)));
  return position;
}

void add_en_passant_option(Command command, std::string& place) {
  command
      .add_option("--ep", place,
                  "Name the passed square where a capture is legal, a pawn stands ready, or always")
      .one_of({"legal", "pseudo", "always"})
      .shows_default();
}

EnPassantField en_passant_field(const std::string& name) {
  if (name == "always") return EnPassantField::kAlways;
  return name == "pseudo" ? EnPassantField::kPseudo : EnPassantField::kLegal;
}

void add_chess_command(Command root) {
  Command chess = root.add_subcommand("chess", "Positions, legal moves and games of chess");
  chess.require_subcommand();
  add_moves_command(chess);
  add_fen_command(chess);
  add_games_command(chess);
  add_perft_command(chess);
  add_prepare_command(chess);
  add_score_command(chess);
  add_chess_eval_command(chess);
  add_chess_play_command(chess);
  add_chess_report_command(chess);
  chess.footer(R"(
Example:
  fullbore chess moves start e2e4 e7e5
  fullbore chess perft start 5)");
}

}  // namespace fullbore::chess
