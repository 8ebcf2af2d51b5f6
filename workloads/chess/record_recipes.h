#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/move_ranker.h"

namespace fullbore::chess {

enum class RecordRecipe {
  endgames,  ///< E: P records of positions of three to five pieces, boards expanded
  games      ///< R: P and A records of positions of random games
};
std::optional<RecordRecipe> parse_record_recipe(std::string_view name);
std::string_view record_recipe_name(RecordRecipe recipe);

struct RecipeOptions {
  RecordRecipe recipe = RecordRecipe::endgames;
  int64_t records = 60'000;
  uint64_t seed = 1;
  double arbiter_share = 1.0 / 3;           ///< of the records of games that are of A, 0 to 1
  std::optional<RecordFormat> format = {};  ///< none: that of the recipe
};

/// Short; of endgames with the board expanded.
RecordFormat recipe_format(RecordRecipe recipe);

/// A position of recipe E, by its number: two kings and one, two or three pieces (weights 2, 2 and 1), each of QRBNP and of
/// either colour, on random squares; the side that moves is drawn too; half-moves 0, full moves 40 to 80. It is legal and
/// not over. A pure function of both numbers. Source: section 9 of the specification.
std::string endgame_fen(uint64_t seed, uint64_t index);

/// A position that a random game kept.
struct KeptPosition {
  std::string fen;
  std::string move;                  ///< that the game goes on with
  std::vector<std::string> history;  ///< the moves before it, oldest first
  bool is_arbiter = false;
  uint64_t ply = 0;
};
/// Of a game of 2 to 40 random legal moves, or fewer if it is over: each position is kept with probability 1/4. A pure
/// function of the numbers.
std::vector<KeptPosition> game_positions(uint64_t seed, uint64_t game, double arbiter_share);

struct RecipeCounts {
  int64_t policy = 0;
  int64_t arbiter = 0;
  int64_t repeated = 0;            ///< positions that had been there before
  int64_t unanalysed = 0;          ///< left out, for they could not be ranked
  std::string first_problem = {};  ///< of the latter
};

/// Hands over so many records, no prompt twice, in an order that depends on the options alone: not on threads, nor on how
/// many are asked for. The moves of P are listed in random order. `progress` is told how many there are. Failure: what
/// `take` returns; no position of the first thousand could be ranked; the recipe has no more positions.
Result<RecipeCounts> make_records(const RecipeOptions& options, MoveRanker& ranker,
                                  const std::function<Status(ChessRecord&&)>& take,
                                  const std::function<void(int64_t)>& progress = {});

/// Whether a position is held out from training: by a hash of its first four fields, so that the same position never stands
/// on both sides, whatever the file and the order.
bool is_held_out(std::string_view fen, double share);

}  // namespace fullbore::chess
