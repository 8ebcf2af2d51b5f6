#pragma once
#include <string>
#include <string_view>

#include "fullbore/app/command.h"
#include "workloads/chess/fen.h"

namespace fullbore::chess {

/// `fullbore chess`.
void add_chess_command(Command root);
void add_perft_command(Command chess);
void add_fen_command(Command chess);
void add_games_command(Command chess);
void add_moves_command(Command chess);
void add_prepare_command(Command chess);
void add_score_command(Command chess);
void add_chess_eval_command(Command chess);
void add_chess_play_command(Command chess);
void add_chess_report_command(Command chess);

/// A position of the command line: a FEN, or "start". UsageError that names the field; `command` begins it.
Position position_argument(std::string_view command, const std::string& text);
/// Adds --ep; `place` is "legal", "pseudo" or "always".
void add_en_passant_option(Command command, std::string& place);
EnPassantField en_passant_field(const std::string& name);

}  // namespace fullbore::chess
