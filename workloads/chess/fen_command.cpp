#include <fmt/format.h>

#include <memory>

#include "fullbore/app/output.h"
#include "workloads/chess/chess_commands.h"
#include "workloads/chess/input_lines.h"

namespace fullbore::chess {
namespace {

struct FenArguments {
  std::vector<std::string> fens;
  std::string en_passant = "legal";
};

// Whether it is one.
bool print_fen(std::string_view text, EnPassantField field) {
  Position position;
  const FenError error = parse_fen(text, position);
  if (error == FenError::kNone) {
    write_output(fen_text(position, field) + '\n');
    return true;
  }
  print_output("invalid: {}\n", describe_fen_error(error, text));
  return false;
}

ExitCode run_fen(const FenArguments& arguments) {
  const EnPassantField field = en_passant_field(arguments.en_passant);
  bool all = true;
  for (const std::string& fen : arguments.fens)
    all &= print_fen(fen == "start" ? fen_text(start_position()) : fen, field);
  if (arguments.fens.empty())
    for (InputLines input; input.next();) all &= print_fen(input.line(), field);
  return all ? ExitCode::kOk : ExitCode::kData;
}

}  // namespace

void add_fen_command(Command chess) {
  Command command =
      chess.add_subcommand("fen", "Check FENs and print them in one form, a line each");
  auto arguments = std::make_shared<FenArguments>();
  command.add_option("FEN", arguments->fens,
                     "Each in quotes; without any, lines of standard input");
  add_en_passant_option(command, arguments->en_passant);
  command.footer(R"(
Of a text that is no position the line says `invalid:`, the field, what was expected and what was
found; the exit code is then 3. Positions that no game can reach are refused where one look tells:
kings, pawns, castling rights, the passed square, a side left in check.

Example:
  fullbore chess fen "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1"
  fullbore chess fen --ep always < positions.txt)");
  command.runs([arguments] { return run_fen(*arguments); });
}

}  // namespace fullbore::chess
