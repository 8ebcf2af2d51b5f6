#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "tests/support/paths.h"
#include "workloads/chess/attacks.h"
#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;

Position position_of(const std::string& fen) {
  Position position;
  const FenError error = parse_fen(fen, position);
  EXPECT_EQ(error, FenError::kNone) << fen << ": " << describe_fen_error(error, fen);
  return position;
}

std::vector<std::string> moves_of(const std::string& fen) {
  MoveList moves = legal_moves(position_of(fen));
  moves.sort();
  std::vector<std::string> texts;
  for (const Move move : moves) texts.push_back(uci_text(move));
  return texts;
}

struct Counts {
  const char* fen;
  std::vector<uint64_t> leaves;
};

// Published counts, as Stockfish 15.1 has them too; deeper ones: tests/golden/compare_python_chess.py.
const std::vector<Counts>& published() {
  static const std::vector<Counts> all = {
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
       {20, 400, 8902, 197281, 4865609}},
      {"r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
       {48, 2039, 97862, 4085603}},
      {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {14, 191, 2812, 43238, 674624}},
      {"r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", {6, 264, 9467, 422333}},
      {"rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {44, 1486, 62379, 2103487}},
      {"r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
       {46, 2079, 89890, 3894594}},
      {"n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", {24, 496, 9483, 182838, 3605103}},
      {"8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", {6, 136, 863, 20471, 117741}},
      {"r3k2r/1b4bq/8/8/8/8/7B/R3K2R w KQkq - 0 1", {26, 1141, 27826, 1274206}}};
  return all;
}

TEST(LegalMoves, PublishedCounts) {
  for (const auto& [fen, leaves] : published())
    for (size_t depth = 1; depth <= leaves.size(); ++depth)
      EXPECT_EQ(perft(position_of(fen), static_cast<int>(depth)), leaves[depth - 1])
          << fen << " to depth " << depth;
  EXPECT_EQ(perft(start_position(), 0), 1U);
}

// tests/golden/perft.txt: the tricky positions of python-chess, and some of its random ones.
TEST(LegalMoves, CountsOfPythonChess) {
  std::ifstream file(testing::source_folder() + "/workloads/chess/tests/golden/perft.txt");
  int compared = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string fen, count;
    std::getline(fields, fen, ';');
    while (std::getline(fields, count, ';')) {
      int depth = 0;
      uint64_t leaves = 0;
      std::istringstream(count) >> depth >> leaves;
      EXPECT_EQ(perft(position_of(fen), depth), leaves) << fen << " to depth " << depth;
      ++compared;
    }
  }
  EXPECT_GT(compared, 150);
}

// A position and what is reached from it: the three ways to ask for legal moves agree, keys are those that a new start
// would compute, texts name one move each and sort as texts do.
void check_tree(const Position& position, int depth) {
  MoveList moves = legal_moves(position);
  ASSERT_EQ(moves.size(), count_legal_moves(position));
  ASSERT_EQ(moves.empty(), !has_legal_move(position));
  ASSERT_EQ(position.key, computed_key(position));
  moves.sort();
  std::string last;
  for (const Move move : moves) {
    const std::string text = uci_text(move);
    ASSERT_LT(last, text);
    ASSERT_EQ(parse_uci_move(text), move);
    last = text;
  }
  Position again;
  ASSERT_EQ(parse_fen(fen_text(position, EnPassantField::kAlways), again), FenError::kNone)
      << fen_text(position, EnPassantField::kAlways);
  ASSERT_EQ(again, position);
  if (depth == 0) return;
  for (const Move move : moves) {
    Position after = position;
    make_move(after, move);
    ASSERT_NO_FATAL_FAILURE(check_tree(after, depth - 1)) << fen_text(position) << ' ' << move.from;
  }
}

TEST(LegalMoves, LeadToWholePositions) {
  for (const auto& [fen, leaves] : published())
    ASSERT_NO_FATAL_FAILURE(check_tree(position_of(fen), 2)) << fen;
}

TEST(LegalMoves, OfCastling) {
  const auto castles = [](const std::string& board, const char* rest) {
    std::vector<std::string> found;
    for (const std::string& move : moves_of(board + rest))
      if (move == "e1g1" || move == "e1c1" || move == "e8g8" || move == "e8c8")
        found.push_back(move);
    return found;
  };
  EXPECT_THAT(castles("r3k2r/8/8/8/8/8/8/R3K2R", " w KQkq - 0 1"), ElementsAre("e1c1", "e1g1"));
  EXPECT_THAT(castles("r3k2r/8/8/8/8/8/8/R3K2R", " b KQk - 0 1"), ElementsAre("e8g8"));
  // b1 attacked: only the king's way matters; b1 occupied: no.
  EXPECT_THAT(castles("1r2k3/8/8/8/8/8/8/R3K3", " w Q - 0 1"), ElementsAre("e1c1"));
  EXPECT_THAT(castles("4k3/8/8/8/8/8/8/RN2K3", " w Q - 0 1"), ElementsAre());
  EXPECT_THAT(castles("3rk3/8/8/8/8/8/8/R3K2R", " w KQ - 0 1"), ElementsAre("e1g1"));
  EXPECT_THAT(castles("4k3/4r3/8/8/8/8/8/R3K2R", " w KQ - 0 1"), ElementsAre());
}

// The captured and the capturing pawn leave the king's rank at once; the same from another rank is legal.
TEST(LegalMoves, OfEnPassant) {
  EXPECT_EQ(legal_en_passant(position_of("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")), 0U);
  EXPECT_EQ(pseudo_legal_en_passant(position_of("8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1")),
            bit_of(parse_square("e4")));
  EXPECT_EQ(legal_en_passant(position_of("8/8/8/k7/3Pp2Q/8/8/3K4 b - d3 0 1")),
            bit_of(parse_square("e4")));
  // Two pawns stand ready, and one of them is pinned.
  EXPECT_EQ(legal_en_passant(position_of("4k3/8/8/8/2pPp3/8/8/3KR3 b - d3 0 1")),
            bit_of(parse_square("c4")));
  // It is legal where it takes the pawn that gives check.
  EXPECT_THAT(moves_of("8/8/8/2k5/3Pp3/8/8/3K4 b - d3 0 1"), ::testing::Contains("e4d3"));
}

// Along lines to the nearest piece, from every square of some random boards, step by step.
TEST(Attacks, ReachTheNearestPiece) {
  uint64_t state = 7;
  for (int trial = 0; trial < 64; ++trial) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const Bitboard occupied = state & (state >> 17 | state << 13);
    for (int square = 0; square < 64; ++square) {
      Bitboard found[2] = {};
      for (int step = 0; step < 9; ++step) {
        const int files = step % 3 - 1, ranks = step / 3 - 1;
        if (files == 0 && ranks == 0) continue;
        int file = square % 8 + files, rank = square / 8 + ranks;
        for (; file >= 0 && file < 8 && rank >= 0 && rank < 8; file += files, rank += ranks) {
          found[files * ranks != 0] |= bit_of(8 * rank + file);
          if ((occupied & bit_of(8 * rank + file)) != 0) break;
        }
      }
      ASSERT_EQ(rook_attacks(static_cast<Square>(square), occupied), found[0]);
      ASSERT_EQ(bishop_attacks(static_cast<Square>(square), occupied), found[1]);
    }
  }
}

TEST(Move, TextsOfUci) {
  EXPECT_EQ(parse_uci_move("e2e4"), (Move{12, 28}));
  EXPECT_EQ(parse_uci_move("a7a8n"), (Move{48, 56, PieceKind::kKnight}));
  for (const char* text : {"", "e2", "e2e", "e2e9", "i2e4", "e2e4 ", " e2e4", "e7e8k", "e7e8Q",
                           "E2E4", "e2-e4", "0000", "e7e8qq", "e2\0e"})
    EXPECT_EQ(parse_uci_move(text), std::nullopt) << text;
  EXPECT_FALSE(is_legal(start_position(), *parse_uci_move("e2e5")));
  EXPECT_FALSE(is_legal(start_position(), *parse_uci_move("e7e5")));
  EXPECT_FALSE(is_legal(start_position(), *parse_uci_move("e2e4q")));
}

}  // namespace
}  // namespace fullbore::chess
