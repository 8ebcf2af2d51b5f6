#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/game.h"

namespace fullbore::chess {

/// A setting of a player that a chess window shows and changes.
struct UciOption {
  std::string name;  ///< "Temperature": found whatever its case
  std::string
      type;  ///< what follows "type": "spin default 1 min 1 max 64", "string default", "check default false"
  /// Takes a new value; what is wrong with it, or "".
  std::function<std::string(std::string_view value)> set;
};

/// Whatever moves: a model, or a random mover in tests.
struct UciPlayer {
  std::string name;
  std::vector<UciOption> options;
  /// A move for the side to move as text, in UCI notation if all is well. It has a legal one. May take long: there is no
  /// search that could be cut short.
  std::function<std::string(const Game&)> move;
};

/// The engine's side of the Universal Chess Interface, a line at a time: any chess window can play against the player.
/// Understood are uci, isready, ucinewgame, position, go (searchmoves, infinite, ponder; times and depths make no
/// difference), stop, ponderhit, setoption, debug, register and quit. Words that are no command are skipped, and a line
/// without any gets no answer. A position or setting that is wrong changes nothing and is told by `info string`.
/// A player whose text is no legal move is told likewise, and the first legal move stands in for it, since a window would end the
/// game. Any bytes may be given.
/// Source: Huber, Meyer-Kahlen, UCI protocol, April 2006.
class UciFront {
 public:
  /// `say` takes an answer: lines, each with its end, that should go out at once.
  UciFront(UciPlayer player, std::function<void(std::string_view)> say);

  /// False once it was told to quit. A loop over standard input:
  ///   while (input.next() && front.answer(input.line())) {}
  bool answer(std::string_view line);

  const Game& game() const { return game_; }
  int64_t moves() const { return moves_; }                  ///< that were asked of the player
  int64_t illegal_moves() const { return illegal_moves_; }  ///< of those

 private:
  void introduce() const;
  void set_position(std::string_view rest);
  void set_option(std::string_view rest) const;
  void go(std::string_view rest);
  void release();
  void tell(const std::string& problem) const;

  UciPlayer player_;
  std::function<void(std::string_view)> say_;
  Game game_;
  std::string held_;  // the answer to `go infinite`, until `stop`
  int64_t moves_ = 0, illegal_moves_ = 0;
};

}  // namespace fullbore::chess
