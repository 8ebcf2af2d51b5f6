#include "workloads/chess/material_search.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "fullbore/base/check.h"
#include "workloads/chess/game.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr int kMate = 1'000'000;   // less the half-moves until it stands on the board
constexpr int kMostPlies = 1'000;  // scores beyond kMate - kMostPlies are mates
constexpr int kCaptureDepth = 4;
constexpr int kDrawnHalfMoves = 150;
constexpr std::array<int, kPieceKinds> kValues = {100, 320, 330, 500, 900, 0};
/// Centipawns for each step towards the centre, by kind.
constexpr std::array<int, kPieceKinds> kCentre = {2, 8, 5, 1, 2, 3};
constexpr int kPawnStep = 6;  // for each rank it has gone

/// 0 in the middle of the board, 6 in its corners.
int distance_from_centre(Square square) {
  const int file = std::max(3 - file_of(square), file_of(square) - 4);
  const int rank = std::max(3 - rank_of(square), rank_of(square) - 4);
  return file + rank;
}

int distance(Square a, Square b) {
  return std::max(std::abs(file_of(a) - file_of(b)), std::abs(rank_of(a) - rank_of(b)));
}

struct SideScore {
  int score = 0;
  int material = 0;
};

SideScore score_of(const Position& position, Side side) {
  SideScore all;
  for (int kind = 0; kind < kPieceKinds; ++kind) {
    const auto index = static_cast<size_t>(kind);
    Bitboard squares = position.of(side, static_cast<PieceKind>(kind));
    while (squares != 0) {
      const Square square = take_square(squares);
      all.material += kValues[index];
      all.score -= kCentre[index] * distance_from_centre(square);
      if (kind == index_of(PieceKind::kPawn))
        all.score += kPawnStep * (side == Side::kWhite ? rank_of(square) : 7 - rank_of(square));
    }
  }
  all.score += all.material;
  return all;
}

/// The side that is ahead wants the other's king at the edge and its own beside it: without this no mate is ever neared.
int chase(const Position& position, Side ahead, int lead) {
  if (lead < kValues[index_of(PieceKind::kKnight)]) return 0;
  const Square hunter = position.king(ahead), hunted = position.king(opponent(ahead));
  return 10 * distance_from_centre(hunted) + 4 * (7 - distance(hunter, hunted));
}

bool is_capture(const Position& position, Move move) {
  return position.board[move.to] != PieceKind::kNone || move.promotion != PieceKind::kNone;
}

/// Captures of the most valuable pieces by the least first: alpha and beta cut soonest there.
void order(const Position& position, std::vector<std::pair<int, Move>>& moves) {
  for (auto& [key, move] : moves) {
    const PieceKind taken = position.board[move.to];
    key = taken == PieceKind::kNone
              ? 0
              : 16 * kValues[static_cast<size_t>(index_of(taken))] -
                    kValues[static_cast<size_t>(index_of(position.board[move.from]))] + 10'000;
    if (move.promotion != PieceKind::kNone)
      key += kValues[static_cast<size_t>(index_of(move.promotion))];
  }
  std::stable_sort(moves.begin(), moves.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
}

class Searcher {
 public:
  /// Scores of the side to move within (alpha, beta), else a bound on that side.
  int search(const Position& position, int depth, int ply, int alpha, int beta) {
    if (position.half_moves >= kDrawnHalfMoves || has_insufficient_material(position)) return 0;
    const bool is_quiet_phase = depth <= 0;
    int best = -kMate;
    if (is_quiet_phase) {
      if (in_check(position) && !has_legal_move(position)) return -(kMate - ply);
      // Stalemates are not looked for here: most positions end at the next line, without a list of moves.
      best = material_score(position);
      if (best >= beta || depth <= -kCaptureDepth) return best;
      alpha = std::max(alpha, best);
    }
    const MoveList legal = legal_moves(position);
    if (!is_quiet_phase && legal.empty()) return in_check(position) ? -(kMate - ply) : 0;
    std::vector<std::pair<int, Move>>& moves = lists_[static_cast<size_t>(ply)];
    moves.clear();
    for (const Move move : legal)
      if (!is_quiet_phase || is_capture(position, move)) moves.emplace_back(0, move);
    order(position, moves);
    for (size_t i = 0; i < moves.size(); ++i) {
      Position next = position;
      make_move(next, moves[i].second);
      best = std::max(best, -search(next, depth - 1, ply + 1, -beta, -alpha));
      alpha = std::max(alpha, best);
      if (alpha >= beta) break;
    }
    return best;
  }

 private:
  /// Of each level, so that nothing is allocated in the middle of a search.
  std::array<std::vector<std::pair<int, Move>>, 32> lists_;
};

double pawns(int score) {
  if (std::abs(score) < kMate - kMostPlies) return static_cast<double>(score) / 100;
  const int moves = (kMate - std::abs(score) + 1) / 2;
  const double value = (100'000 - moves) / 100.0;
  return score > 0 ? value : -value;
}

}  // namespace

int material_score(const Position& position) {
  const Side us = position.to_move, them = opponent(us);
  const SideScore ours = score_of(position, us), theirs = score_of(position, them);
  return ours.score - theirs.score + chase(position, us, ours.material - theirs.material) -
         chase(position, them, theirs.material - ours.material);
}

std::vector<RankedMove> search_moves(const Position& position,
                                     const MaterialSearchOptions& options) {
  FB_CHECK(options.depth >= 1 && options.depth <= 6 && options.moves >= 1, "{} {}", options.depth,
           options.moves);
  MoveList legal = legal_moves(position);
  legal.sort();
  std::vector<std::pair<int, Move>> moves;
  for (const Move move : legal) moves.emplace_back(0, move);
  order(position, moves);
  const size_t wanted = std::min(moves.size(), static_cast<size_t>(options.moves));
  struct Scored {
    int score;
    std::string text;
  };
  const auto is_before = [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.text < b.text;
  };
  std::vector<Scored> best;  // at most `wanted`, in order
  Searcher searcher;
  for (const auto& [key, move] : moves) {
    Position next = position;
    make_move(next, move);
    // A score equal to the last one kept must be exact: texts decide then.
    const int alpha = best.size() < wanted ? -kMate - 1 : best.back().score - 1;
    Scored scored{-searcher.search(next, options.depth - 1, 1, -kMate - 1, -alpha), uci_text(move)};
    best.insert(std::upper_bound(best.begin(), best.end(), scored, is_before), scored);
    if (best.size() > wanted) best.pop_back();
  }
  std::vector<RankedMove> ranked;
  for (const Scored& each : best) ranked.push_back({each.text, pawns(each.score)});
  return ranked;
}

}  // namespace fullbore::chess
