#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr const char* kStart = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

FenError error_of(std::string_view text) {
  Position position = start_position();
  const FenError error = parse_fen(text, position);
  if (error != FenError::kNone) {
    EXPECT_EQ(position, start_position()) << "touched: " << text;
  }
  return error;
}

TEST(Fen, OfTheStart) {
  Position position;
  ASSERT_EQ(parse_fen(kStart, position), FenError::kNone);
  EXPECT_EQ(position, start_position());
  EXPECT_EQ(fen_text(start_position()), kStart);
}

TEST(Fen, IsPrintedAsItWas) {
  for (const char* fen :
       {kStart, "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", "r3k2r/1b4bq/8/8/8/8/7B/R3K2R w KQkq - 0 1",
        "2b3k1/Q4rqn/p2p4/4p3/p6p/2PP3P/BP3PP1/R5K1 b - - 0 34",
        "rnbqkbnr/1ppppppp/8/pP6/8/8/P1PPPPPP/RNBQKBNR w KQkq a6 0 3",
        "4k3/8/8/8/8/8/4P3/R3K3 w Q - 149 999999"}) {
    Position position;
    ASSERT_EQ(parse_fen(fen, position), FenError::kNone) << fen;
    EXPECT_EQ(fen_text(position), fen);
  }
}

// The square behind a pawn: always, where a pawn stands ready, where it may capture.
TEST(Fen, NamesThePassedSquareByConvention) {
  struct Row {
    const char *fen, *legal, *pseudo, *always;
  };
  for (const Row& row :
       {Row{"8/8/8/8/k2Pp2Q/8/8/3K4 b - d3 0 1", "-", "d3", "d3"},
        Row{"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1", "-", "-", "e3"},
        Row{"4k3/8/8/8/2pPp3/8/8/3KR3 b - d3 0 1", "d3", "d3", "d3"}}) {
    Position position;
    ASSERT_EQ(parse_fen(row.fen, position), FenError::kNone);
    const auto passed = [&](EnPassantField field) {
      const std::string text = fen_text(position, field);
      return text.substr(text.find(" - ") + 3, text.size() - text.find(" - ") - 7);
    };
    if (position.castling != 0) {
      EXPECT_EQ(fen_text(position), "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1");
      EXPECT_EQ(fen_text(position, EnPassantField::kPseudo), fen_text(position));
      EXPECT_EQ(fen_text(position, EnPassantField::kAlways), row.fen);
      continue;
    }
    EXPECT_EQ(passed(EnPassantField::kLegal), row.legal) << row.fen;
    EXPECT_EQ(passed(EnPassantField::kPseudo), row.pseudo) << row.fen;
    EXPECT_EQ(passed(EnPassantField::kAlways), row.always) << row.fen;
  }
}

TEST(Fen, Refuses) {
  using enum FenError;
  const struct {
    const char* fen;
    FenError error;
  } rows[] = {
      {"", kFields},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0", kFields},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 1", kFields},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1 ", kFields},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR  w KQkq - 0 1", kFields},
      {" rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kFields},
      {"rnbqkbnr/pppppppp/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRanks},
      {"rnbqkbnr/pppppppp/8/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRanks},
      {"rnbqkbnr/pppppppp/9/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRankWidth},
      {"rnbqkbnr/pppppppp/44/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRankWidth},
      {"rnbqkbnr/pppppppp/7/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRankWidth},
      {"rnbqkbnr/pppppppp/8p/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kRankWidth},
      {"rnbqkbnr/ppppxppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", kPiece},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQQBNR w kq - 0 1", kKings},
      {"4k3/8/8/8/8/8/8/K3K3 w - - 0 1", kKings},
      {"4k2P/8/8/8/8/8/8/4K3 w - - 0 1", kPawnRank},
      {"4k3/8/8/8/8/8/8/p3K3 w - - 0 1", kPawnRank},
      {"4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", kTooManyPieces},
      {"4k3/8/8/QQQQQQQQ/QQQQQQQQ/8/8/4K3 w - - 0 1", kTooManyPieces},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1", kSide},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkx - 0 1", kCastling},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KK - 0 1", kCastling},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKB1R w KQkq - 0 1", kNone},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBN1 w KQkq - 0 1", kCastlingSquares},
      {"rnbq1bnr/ppppkppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQk - 0 1", kCastlingSquares},
      {"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e4 0 1", kEnPassant},
      {"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e6 0 1", kEnPassant},
      {"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e 0 1", kEnPassant},
      {"rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq d3 0 1", kEnPassantSquares},
      {"rnbqkbnr/pppppppp/8/8/4P3/4N3/PPPP1PPP/RNBQKB1R b KQkq e3 0 1", kEnPassantSquares},
      {"rnbqkbnr/pppppppp/8/8/4P3/8/PPPPNPPP/RNBQKB1R b KQkq e3 0 1", kEnPassantSquares},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - -1 1", kHalfMoves},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - x 1", kHalfMoves},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 -1", kFullMoves},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1.5", kFullMoves},
      {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 99999999999", kFullMoves},
      {"8/8/8/8/8/8/k7/K7 w - - 0 1", kKingsAdjacent},
      {"4k3/8/8/8/8/8/8/4RK2 w - - 0 1", kOpponentInCheck},
  };
  for (const auto& [fen, error] : rows) EXPECT_EQ(error_of(fen), error) << fen;
}

TEST(Fen, ErrorsNameTheField) {
  const auto described = [](const char* fen) { return describe_fen_error(error_of(fen), fen); };
  EXPECT_EQ(described("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1"),
            "field 2 (side to move): expected w or b, found 'x'");
  EXPECT_EQ(described("8/8/8/8/8/8/k7/K7 w - - 0 1"),
            "expected kings that are not adjacent, found '8/8/8/8/8/8/k7/K7 w - - 0 1'");
  EXPECT_EQ(described("\x1b[2J"), "expected six fields with one space between, found '\\x1b[2J'");
}

// What is accepted although it is not how a FEN is printed.
TEST(Fen, IsNormalised) {
  Position position;
  ASSERT_EQ(parse_fen("r3k2r/8/8/8/8/8/8/R3K2R w qkQK - 007 0", position), FenError::kNone);
  EXPECT_EQ(fen_text(position), "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 7 1");
}

}  // namespace
}  // namespace fullbore::chess
