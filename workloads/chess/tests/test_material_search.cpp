#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/base/philox.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/game.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/material_search.h"

namespace fullbore::chess {
namespace {

Position position_of(const char* fen) {
  Position position;
  EXPECT_EQ(parse_fen(fen, position), FenError::kNone) << fen;
  return position;
}

TEST(MaterialSearch, FindsMatesAndTheirLength) {
  // The back rank.
  auto moves = search_moves(position_of("6k1/5ppp/8/8/8/8/8/K2R4 w - - 0 1"));
  EXPECT_EQ(moves[0], (RankedMove{"d1d8", 999.99}));
  EXPECT_EQ(moves.size(), 5U);
  // Two rooks: either goes to the seventh rank, the other mates on the eighth.
  moves = search_moves(position_of("7k/8/R7/1R6/8/8/8/K7 w - - 0 1"));
  EXPECT_EQ(moves[0], (RankedMove{"a6a7", 999.98}));
  EXPECT_EQ(moves[1], (RankedMove{"b5b7", 999.98}));
  // The only move, behind which the other side mates.
  moves = search_moves(position_of("k7/2K5/8/1Q6/8/8/8/8 b - - 0 1"));
  EXPECT_EQ(moves, (std::vector<RankedMove>{{"a8a7", -999.99}}));
}

TEST(MaterialSearch, TakesWhatIsNotDefended) {
  EXPECT_EQ(search_moves(position_of("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1"), {.depth = 1})[0].move,
            "e4d5");
  // The pawn is defended: the queen does not take it.
  for (const RankedMove& each :
       search_moves(position_of("4k3/8/2p5/3p4/8/8/8/3QK3 w - - 0 1"), {.depth = 1}))
    EXPECT_NE(each.move, "d1d5");
  EXPECT_EQ(material_score(start_position()), 0);
}

/// Every score by plain negamax to the same depth, without a window.
int plain(const Position& position, int depth, int captures) {
  if (has_insufficient_material(position)) return 0;
  const bool is_quiet = depth == 0;
  const MoveList moves = legal_moves(position);
  if (moves.empty() && (!is_quiet || in_check(position)))
    return in_check(position) ? -1'000'000 : 0;
  std::vector<int> scores;
  if (is_quiet) scores.push_back(material_score(position));
  for (const Move move : moves) {
    if (is_quiet && (captures == 0 || (position.board[move.to] == PieceKind::kNone &&
                                       move.promotion == PieceKind::kNone)))
      continue;
    Position next = position;
    make_move(next, move);
    scores.push_back(-plain(next, is_quiet ? 0 : depth - 1, is_quiet ? captures - 1 : captures));
  }
  return scores.empty() ? material_score(position)
                        : *std::max_element(scores.begin(), scores.end());
}

// The window changes no score, and moves of one score stand in the order of their texts.
TEST(MaterialSearch, IsThatOfPlainNegamax) {
  PhiloxStream draws(5);
  for (int game = 0; game < 4; ++game) {
    Position position = start_position();
    for (int ply = 0; ply < 60; ++ply) {
      const MoveList moves = legal_moves(position);
      if (moves.empty() || has_insufficient_material(position)) break;
      if (ply % 10 == 9) {
        std::vector<RankedMove> expected;
        for (const Move move : moves) {
          Position next = position;
          make_move(next, move);
          expected.push_back({uci_text(move), -plain(next, 0, 4) / 100.0});
        }
        std::sort(expected.begin(), expected.end(), [](const RankedMove& a, const RankedMove& b) {
          return a.eval != b.eval ? a.eval > b.eval : a.move < b.move;
        });
        expected.resize(std::min<size_t>(expected.size(), 5));
        const auto found = search_moves(position, {.depth = 1});
        ASSERT_EQ(found.size(), expected.size());
        for (size_t i = 0; i < found.size(); ++i) {
          EXPECT_EQ(found[i].move, expected[i].move) << fen_text(position);
          if (std::abs(found[i].eval) < 900) {
            EXPECT_EQ(found[i].eval, expected[i].eval);
          }
        }
      }
      make_move(position,
                moves[static_cast<int>(draws.below(static_cast<uint64_t>(moves.size())))]);
    }
  }
}

}  // namespace
}  // namespace fullbore::chess
