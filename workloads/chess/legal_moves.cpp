#include "workloads/chess/legal_moves.h"

#include <algorithm>

#include "workloads/chess/attacks.h"

namespace fullbore::chess {
namespace {

constexpr Bitboard kPromotionRanks = kRank1 | kRank8;
constexpr PieceKind kPromotions[] = {PieceKind::kQueen, PieceKind::kRook, PieceKind::kBishop,
                                     PieceKind::kKnight};

// What the generator hands over: sets of squares to which one piece can go, and sets that pawns reach by one step.
struct ListSink {
  MoveList& list;

  bool piece(Square from, Bitboard targets) {
    while (targets != 0) list.push({from, take_square(targets)});
    return false;
  }
  // Each came from `target` - `step`.
  bool pawns(Bitboard targets, int step) {
    Bitboard promoting = targets & kPromotionRanks;
    for (targets ^= promoting; targets != 0;) {
      const Square to = take_square(targets);
      list.push({static_cast<Square>(to - step), to});
    }
    while (promoting != 0) {
      const Square to = take_square(promoting);
      for (const PieceKind kind : kPromotions)
        list.push({static_cast<Square>(to - step), to, kind});
    }
    return false;
  }
};

struct CountSink {
  int count = 0;

  bool piece(Square, Bitboard targets) {
    count += std::popcount(targets);
    return false;
  }
  bool pawns(Bitboard targets, int) {
    count += std::popcount(targets) + 3 * std::popcount(targets & kPromotionRanks);
    return false;
  }
};

// Is content with one move.
struct AnySink {
  static bool piece(Square, Bitboard targets) { return targets != 0; }
  static bool pawns(Bitboard targets, int) { return targets != 0; }
};

// Squares one step further for the side to move; of captures, towards file h or a.
constexpr Bitboard shifted(Bitboard squares, int step) {
  return step > 0 ? squares << step : squares >> -step;
}

// Legal moves of one position. Pieces that stand alone between the king and an enemy's sliding piece may only move on
// that line; in check from one piece all but the king must capture it or step between; from two, only the king moves.
class Generator {
 public:
  explicit Generator(const Position& position)
      : position_(position),
        us_(position.to_move),
        them_(opponent(us_)),
        own_(position.of(us_)),
        occupied_(position.occupied()),
        king_(position.king(us_)) {
    const Bitboard queens = position.of(PieceKind::kQueen);
    const Bitboard enemy = position.of(them_);
    checkers_ =
        enemy & ((kAttacks.pawn[static_cast<size_t>(us_)][king_] & position.of(PieceKind::kPawn)) |
                 (kAttacks.knight[king_] & position.of(PieceKind::kKnight)));
    // Sliding pieces that would attack the king if only enemies stood on the board.
    Bitboard snipers =
        enemy & ((rook_attacks(king_, enemy) & (position.of(PieceKind::kRook) | queens)) |
                 (bishop_attacks(king_, enemy) & (position.of(PieceKind::kBishop) | queens)));
    while (snipers != 0) {
      const Square sniper = take_square(snipers);
      const Bitboard blockers = kAttacks.between[king_][sniper] & occupied_;
      if (blockers == 0)
        checkers_ |= bit_of(sniper);
      else if ((blockers & (blockers - 1)) == 0)
        pinned_ |= blockers;
    }
  }

  // True where the sink has had enough.
  template <typename Sink>
  bool run(Sink& sink) const {
    if (king_moves(sink)) return true;
    Bitboard targets = ~own_;
    if (checkers_ != 0) {
      if ((checkers_ & (checkers_ - 1)) != 0) return false;
      targets = checkers_ | kAttacks.between[king_][first_square(checkers_)];
    }
    return pieces(sink, targets) || pawn_moves(sink, targets);
  }

  Bitboard legal_en_passant() const {
    Bitboard found = 0;
    if (checkers_ != 0 && (checkers_ & (checkers_ - 1)) != 0) return found;
    const Square target = position_.en_passant;
    const auto captured = static_cast<Square>(target ^ 8);
    for (Bitboard rest = pseudo_legal_en_passant(position_); rest != 0;) {
      const Bitboard from = bit_of(take_square(rest));
      // Two pawns leave one rank at once, so that no pin tells: the board after the capture does.
      const Bitboard after = (occupied_ ^ from ^ bit_of(captured)) | bit_of(target);
      if ((attackers(position_, king_, them_, after) & ~bit_of(captured)) == 0) found |= from;
    }
    return found;
  }

 private:
  bool attacked(Square square, Bitboard occupied) const {
    return attackers(position_, square, them_, occupied) != 0;
  }

  template <typename Sink>
  bool king_moves(Sink& sink) const {
    Bitboard safe = 0;
    const Bitboard without_king = occupied_ ^ bit_of(king_);
    for (Bitboard rest = kAttacks.king[king_] & ~own_; rest != 0;) {
      const Square to = take_square(rest);
      if (!attacked(to, without_king)) safe |= bit_of(to);
    }
    if (checkers_ == 0) {
      const bool white = us_ == Side::kWhite;
      const int rights = white ? position_.castling : position_.castling >> 2;
      const auto square = [this](int step) { return static_cast<Square>(king_ + step); };
      // The king has not moved, so it stands on e1 or e8 where a right is left.
      if ((rights & kWhiteShort) != 0 && (occupied_ & (Bitboard{6} << (king_ - 4) << 4)) == 0 &&
          !attacked(square(1), occupied_) && !attacked(square(2), occupied_))
        safe |= bit_of(square(2));
      if ((rights & kWhiteLong) != 0 && (occupied_ & (Bitboard{14} << (king_ - 4))) == 0 &&
          !attacked(square(-1), occupied_) && !attacked(square(-2), occupied_))
        safe |= bit_of(square(-2));
    }
    return safe != 0 && sink.piece(king_, safe);
  }

  template <typename Sink>
  bool pieces(Sink& sink, Bitboard targets) const {
    for (Bitboard rest = own_ & position_.of(PieceKind::kKnight) & ~pinned_; rest != 0;) {
      const Square from = take_square(rest);
      if (sink.piece(from, kAttacks.knight[from] & targets)) return true;
    }
    const Bitboard queens = position_.of(PieceKind::kQueen);
    for (Bitboard rest = own_ & (position_.of(PieceKind::kBishop) | queens); rest != 0;) {
      const Square from = take_square(rest);
      if (sink.piece(from, bishop_attacks(from, occupied_) & targets & way_of(from))) return true;
    }
    for (Bitboard rest = own_ & (position_.of(PieceKind::kRook) | queens); rest != 0;) {
      const Square from = take_square(rest);
      if (sink.piece(from, rook_attacks(from, occupied_) & targets & way_of(from))) return true;
    }
    return false;
  }

  // Where a piece may go without laying its king open.
  Bitboard way_of(Square from) const {
    return (pinned_ & bit_of(from)) != 0 ? kAttacks.through[king_][from] : ~Bitboard{0};
  }

  template <typename Sink>
  bool pawn_moves(Sink& sink, Bitboard targets) const {
    const Bitboard pawns = own_ & position_.of(PieceKind::kPawn);
    if (steps(sink, pawns & ~pinned_, targets)) return true;
    for (Bitboard rest = pawns & pinned_; rest != 0;) {
      const Square from = take_square(rest);
      if (steps(sink, bit_of(from), targets & kAttacks.through[king_][from])) return true;
    }
    if (position_.en_passant == kNoSquare) return false;
    for (Bitboard rest = legal_en_passant(); rest != 0;)
      if (sink.piece(take_square(rest), bit_of(position_.en_passant))) return true;
    return false;
  }

  // All but en passant, of pawns that may go to any of `targets`.
  template <typename Sink>
  bool steps(Sink& sink, Bitboard pawns, Bitboard targets) const {
    const bool white = us_ == Side::kWhite;
    const int forward = white ? 8 : -8;
    const Bitboard enemy = position_.of(them_), empty = ~occupied_;
    const Bitboard once = shifted(pawns, forward) & empty;
    const Bitboard twice = shifted(once & rank_mask(white ? 2 : 5), forward) & empty;
    const Bitboard towards_h = shifted(pawns & ~kFileH, forward + 1) & enemy;
    const Bitboard towards_a = shifted(pawns & ~kFileA, forward - 1) & enemy;
    return sink.pawns(once & targets, forward) || sink.pawns(twice & targets, 2 * forward) ||
           sink.pawns(towards_h & targets, forward + 1) ||
           sink.pawns(towards_a & targets, forward - 1);
  }

  const Position& position_;
  Side us_, them_;
  Bitboard own_, occupied_;
  Square king_;
  Bitboard checkers_ = 0, pinned_ = 0;  // pinned_: of either side, which does not matter
};

}  // namespace

bool MoveList::contains(Move move) const { return std::find(begin(), end(), move) != end(); }

void MoveList::sort() {
  // Texts compare as files before ranks; a missing promotion comes first, and b n q r by their letters.
  const auto order = [](Move move) {
    constexpr int kByLetter[] = {0, 2, 1, 4, 3, 0, 0};
    const auto text = [](Square square) { return 8 * file_of(square) + rank_of(square); };
    return (text(move.from) * 64 + text(move.to)) * 8 + kByLetter[index_of(move.promotion)];
  };
  std::sort(moves_.begin(), moves_.begin() + size_,
            [&](Move a, Move b) { return order(a) < order(b); });
}

MoveList legal_moves(const Position& position) {
  MoveList list;
  ListSink sink{list};
  Generator(position).run(sink);
  return list;
}

int count_legal_moves(const Position& position) {
  CountSink sink;
  Generator(position).run(sink);
  return sink.count;
}

bool has_legal_move(const Position& position) {
  AnySink sink;
  return Generator(position).run(sink);
}

bool is_legal(const Position& position, Move move) {
  return (position.of(position.to_move) & bit_of(move.from)) != 0 &&
         legal_moves(position).contains(move);
}

Bitboard pseudo_legal_en_passant(const Position& position) {
  if (position.en_passant == kNoSquare) return 0;
  const auto from_side = static_cast<size_t>(opponent(position.to_move));
  return kAttacks.pawn[from_side][position.en_passant] &
         position.of(position.to_move, PieceKind::kPawn);
}

Bitboard legal_en_passant(const Position& position) {
  return pseudo_legal_en_passant(position) == 0 ? 0 : Generator(position).legal_en_passant();
}

uint64_t perft(const Position& position, int depth) {
  if (depth <= 0) return 1;
  if (depth == 1) return static_cast<uint64_t>(count_legal_moves(position));
  uint64_t leaves = 0;
  for (const Move move : legal_moves(position)) {
    Position after = position;
    make_move(after, move);
    leaves += perft(after, depth - 1);
  }
  return leaves;
}

}  // namespace fullbore::chess
