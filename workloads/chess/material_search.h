#pragma once
#include <cstdint>
#include <vector>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/position.h"

namespace fullbore::chess {

struct MaterialSearchOptions {
  int depth = 3;      ///< half-moves, 1 to 6; captures are followed for a few more
  int64_t moves = 5;  ///< of each position, best first
};

/// The best moves of a position that is not over, best first, for machines without an engine: a search of fixed depth over
/// material, the place of pieces and the kings' distance. Mates within the depth are found. The same position always has
/// the same answer; moves of one score stand in the order of their texts.
/// Source: negamax with alpha and beta, D. E. Knuth, R. W. Moore 1975, "An analysis of alpha-beta pruning".
std::vector<RankedMove> search_moves(const Position& position,
                                     const MaterialSearchOptions& options = {});

/// What the position is worth to the side to move, in centipawns, without any search.
int material_score(const Position& position);

}  // namespace fullbore::chess
