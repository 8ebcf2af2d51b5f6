// Any bytes as a FEN and moves, a line each: refused with a word, or a position that stays whole whatever is played. The
// same lines to the engine's side of UCI: its moves are legal.
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/game.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/transition.h"
#include "workloads/chess/uci_player.h"

using namespace fullbore;
using namespace fullbore::chess;
using fullbore::testing::require;

namespace {

// What holds for every position that a FEN or a legal move gives.
void check_whole(const Position& position) {
  require(position.key == computed_key(position));
  const MoveList moves = legal_moves(position);
  require(moves.size() == count_legal_moves(position));
  require(moves.empty() != has_legal_move(position));
  Position again;
  require(parse_fen(fen_text(position, EnPassantField::kAlways), again) == FenError::kNone);
  require(again == position);
  require(position_key(again) == position_key(position));
  for (const Move move : moves) {
    Position after = position;
    make_move(after, move);
    require(attackers(after, after.king(position.to_move), after.to_move, after.occupied()) == 0);
    require(parse_uci_move(uci_text(move)) == move);
  }
}

}  // namespace

// A player that takes the whole line for its move.
void talk(std::string_view text) {
  std::string said, line;
  Game asked;
  UciFront front({"fuzz",
                  {},
                  [&](const Game& game) {
                    asked = game;
                    return line;
                  }},
                 [&](std::string_view answer) { said += answer; });
  bool open = true;
  while (open && !text.empty()) {
    line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    said = "\n";
    Game before = asked;  // an answer that was held is given first
    open = front.answer(line);
    if (const size_t at = said.rfind("\nbestmove "); at != std::string::npos) {
      const std::string move = said.substr(at + 10, said.find('\n', at + 10) - at - 10);
      require(move == "(none)" || before.play(move) || Game(asked).play(move));
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  talk(text);
  const auto next_line = [&] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    return line;
  };
  const std::string_view fen = next_line();
  Position position = start_position();
  const FenError error = parse_fen(fen, position);
  if (error != FenError::kNone) {
    require(position == start_position());
    require(!describe_fen_error(error, fen).empty());
  }
  check_whole(position);
  Game game(position);
  for (int half_moves = 0; half_moves < 200 && !text.empty(); ++half_moves) {
    const std::string_view line = next_line();
    const Transition answer = transition(game.position(), line, game.keys());
    // A line that is no move chooses one by its first byte.
    const MoveList moves = legal_moves(game.position());
    if (!game.play(line)) {
      require(answer.truncated && answer.position == game.position());
      if (moves.empty()) return 0;
      const int chosen = line.empty() ? 0 : static_cast<unsigned char>(line[0]);
      require(game.play(moves[chosen % moves.size()]));
    } else {
      require(!answer.truncated && answer.position == game.position());
      require(answer.result == game.result());
      require(answer.terminated == (answer.result != GameResult::kOngoing));
    }
    check_whole(game.position());
  }
  return 0;
}
