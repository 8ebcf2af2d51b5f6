#include "workloads/chess/position.h"

#include "workloads/chess/attacks.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

struct ZobristKeys {
  std::array<std::array<std::array<uint64_t, 64>, kPieceKinds>, 2> pieces = {};
  std::array<uint64_t, 16> castling = {};
  std::array<uint64_t, 8> en_passant = {};
  uint64_t black_to_move = 0;
};

// SplitMix64 (Steele, Lea, Flood 2014) from a fixed state: keys are the same on every machine.
constexpr uint64_t next_key(uint64_t& state) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

constexpr ZobristKeys make_keys() {
  ZobristKeys keys;
  uint64_t state = 0;
  for (auto& side : keys.pieces)
    for (auto& kind : side)
      for (uint64_t& key : kind) key = next_key(state);
  for (uint64_t& key : keys.castling) key = next_key(state);
  for (uint64_t& key : keys.en_passant) key = next_key(state);
  keys.black_to_move = next_key(state);
  return keys;
}

constexpr ZobristKeys kKeys = make_keys();

// The rights that remain once a piece has left or come to a square.
constexpr std::array<uint8_t, 64> make_castling_masks() {
  std::array<uint8_t, 64> masks = {};
  for (uint8_t& mask : masks) mask = 15;
  masks[4] = 15 & ~(kWhiteShort | kWhiteLong);
  masks[0] = 15 & ~kWhiteLong;
  masks[7] = 15 & ~kWhiteShort;
  masks[60] = 15 & ~(kBlackShort | kBlackLong);
  masks[56] = 15 & ~kBlackLong;
  masks[63] = 15 & ~kBlackShort;
  return masks;
}

constexpr std::array<uint8_t, 64> kCastlingMasks = make_castling_masks();

uint64_t piece_key(Side side, PieceKind kind, Square square) {
  return kKeys.pieces[static_cast<size_t>(side)][static_cast<size_t>(kind)][square];
}

// Puts a piece on an empty square, or takes it off.
void toggle(Position& position, Side side, PieceKind kind, Square square) {
  position.kinds[static_cast<size_t>(kind)] ^= bit_of(square);
  position.sides[static_cast<size_t>(side)] ^= bit_of(square);
  position.key ^= piece_key(side, kind, square);
}

void move_piece(Position& position, Side side, PieceKind kind, Square from, Square to) {
  const Bitboard both = bit_of(from) | bit_of(to);
  position.kinds[static_cast<size_t>(kind)] ^= both;
  position.sides[static_cast<size_t>(side)] ^= both;
  position.board[from] = PieceKind::kNone;
  position.board[to] = kind;
  position.key ^= piece_key(side, kind, from) ^ piece_key(side, kind, to);
}

Position make_start_position() {
  constexpr PieceKind kBackRank[] = {PieceKind::kRook,   PieceKind::kKnight, PieceKind::kBishop,
                                     PieceKind::kQueen,  PieceKind::kKing,   PieceKind::kBishop,
                                     PieceKind::kKnight, PieceKind::kRook};
  Position position = empty_position();
  for (int file = 0; file < 8; ++file) {
    put_piece(position, square_at(file, 0), Side::kWhite, kBackRank[file]);
    put_piece(position, square_at(file, 1), Side::kWhite, PieceKind::kPawn);
    put_piece(position, square_at(file, 6), Side::kBlack, PieceKind::kPawn);
    put_piece(position, square_at(file, 7), Side::kBlack, kBackRank[file]);
  }
  position.castling = kWhiteShort | kWhiteLong | kBlackShort | kBlackLong;
  position.key = computed_key(position);
  return position;
}

}  // namespace

const Position& start_position() {
  static const Position position = make_start_position();
  return position;
}

Position empty_position() {
  Position position;
  position.board.fill(PieceKind::kNone);
  position.key = computed_key(position);
  return position;
}

void put_piece(Position& position, Square square, Side side, PieceKind kind) {
  toggle(position, side, kind, square);
  position.board[square] = kind;
}

uint64_t computed_key(const Position& position) {
  uint64_t key = kKeys.castling[position.castling];
  if (position.to_move == Side::kBlack) key ^= kKeys.black_to_move;
  for (Bitboard rest = position.occupied(); rest != 0;) {
    const Square square = take_square(rest);
    const Side side =
        (position.of(Side::kWhite) & bit_of(square)) != 0 ? Side::kWhite : Side::kBlack;
    key ^= piece_key(side, position.board[square], square);
  }
  return key;
}

Bitboard attackers(const Position& position, Square square, Side by, Bitboard occupied) {
  const Bitboard queens = position.of(PieceKind::kQueen);
  const Bitboard found =
      (kAttacks.pawn[static_cast<size_t>(opponent(by))][square] & position.of(PieceKind::kPawn)) |
      (kAttacks.knight[square] & position.of(PieceKind::kKnight)) |
      (kAttacks.king[square] & position.of(PieceKind::kKing)) |
      (bishop_attacks(square, occupied) & (position.of(PieceKind::kBishop) | queens)) |
      (rook_attacks(square, occupied) & (position.of(PieceKind::kRook) | queens));
  return found & position.of(by);
}

bool in_check(const Position& position) {
  return attackers(position, position.king(position.to_move), opponent(position.to_move),
                   position.occupied()) != 0;
}

void make_move(Position& position, Move move) {
  const Side side = position.to_move, other = opponent(side);
  const PieceKind kind = position.board[move.from];
  ++position.half_moves;
  if (const PieceKind captured = position.board[move.to]; captured != PieceKind::kNone) {
    toggle(position, other, captured, move.to);
    position.half_moves = 0;
  }
  move_piece(position, side, kind, move.from, move.to);
  const Square passed = position.en_passant;
  position.en_passant = kNoSquare;
  if (kind == PieceKind::kPawn) {
    position.half_moves = 0;
    if ((move.from ^ move.to) == 16) {
      position.en_passant = static_cast<Square>((move.from + move.to) / 2);
    } else if (move.to == passed) {
      const auto captured = static_cast<Square>(move.to ^ 8);  // a rank nearer to the mover
      toggle(position, other, PieceKind::kPawn, captured);
      position.board[captured] = PieceKind::kNone;
    } else if (move.promotion != PieceKind::kNone) {
      toggle(position, side, PieceKind::kPawn, move.to);
      put_piece(position, move.to, side, move.promotion);
    }
  } else if (kind == PieceKind::kKing && (move.to == move.from + 2 || move.to + 2 == move.from)) {
    const bool is_short = move.to > move.from;
    const auto rook_from = static_cast<Square>(is_short ? move.to + 1 : move.to - 2);
    const auto rook_to = static_cast<Square>(is_short ? move.to - 1 : move.to + 1);
    move_piece(position, side, PieceKind::kRook, rook_from, rook_to);
  }
  const auto castling =
      static_cast<uint8_t>(position.castling & kCastlingMasks[move.from] & kCastlingMasks[move.to]);
  position.key ^= kKeys.castling[position.castling] ^ kKeys.castling[castling];
  position.castling = castling;
  if (side == Side::kBlack) ++position.full_moves;
  position.to_move = other;
  position.key ^= kKeys.black_to_move;
}

uint64_t position_key(const Position& position) {
  if (position.en_passant == kNoSquare || legal_en_passant(position) == 0) return position.key;
  return position.key ^ kKeys.en_passant[static_cast<size_t>(file_of(position.en_passant))];
}

}  // namespace fullbore::chess
