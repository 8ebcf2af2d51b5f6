#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "workloads/chess/game.h"
#include "workloads/chess/puzzles.h"

namespace fullbore::chess {

/// How a game of self-play ended.
enum class GameEnding : uint8_t {
  kOver,         ///< by the rules (Game::result())
  kIllegalMove,  ///< a text was no legal move; the mover has lost
  kClaimed,      ///< a draw by 50 moves or the third repetition, where claims end games
  kTooLong       ///< SelfPlayOptions::most_half_moves
};

struct SelfPlayOptions {
  int64_t games_at_once = 64;
  int64_t most_half_moves = 300;
  bool draws_are_claimed = false;
  /// An illegal move does not end the game: the first legal one is played in its place.
  bool replaces_illegal_moves = false;
};

struct PlayedGame {
  Game game;
  GameEnding ending = GameEnding::kOver;
  int64_t illegal_moves = 0;
};

struct SelfPlayCounts {
  int64_t games = 0;
  int64_t half_moves = 0;     ///< that were asked for, illegal ones included
  int64_t illegal_moves = 0;  ///< of those
  int64_t white_wins = 0, black_wins = 0, draws = 0, unfinished = 0;
  std::array<int64_t, 6> results = {};  ///< by GameResult, of games that are over by the rules
  std::vector<int64_t> lengths;         ///< half-moves of each game, in the order of its start

  double illegal_share() const;
  double mean_length() const;
};

/// A game from each of `starts`, both sides moved by `propose`, up to games_at_once at a time: a game that ends makes room
/// for the next. Results depend on how many play at once only if `propose` does. `finished`, if set, is given each game as it ends, with
/// its index in `starts`.
SelfPlayCounts play_games(std::span<const Position> starts, const MoveProposer& propose,
                          const SelfPlayOptions& options = {},
                          const std::function<void(size_t, PlayedGame&&)>& finished = {});

}  // namespace fullbore::chess
