#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/chess/fen.h"
#include "workloads/chess/game.h"
#include "workloads/chess/transition.h"

namespace fullbore::chess {
namespace {

using ::testing::StartsWith;

Position position_of(const std::string& fen) {
  Position position;
  const FenError error = parse_fen(fen, position);
  EXPECT_EQ(error, FenError::kNone) << fen << ": " << describe_fen_error(error, fen);
  return position;
}

std::string answer(const std::string& fen, const std::string& move,
                   EnPassantField field = EnPassantField::kLegal) {
  return transition_text(transition(position_of(fen), move), field);
}

TEST(Transition, AnswersOfTheTable) {
  const char* const start = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";
  const std::string castling = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 3 10";
  const std::string promotions = "n1n5/PPPk4/8/8/8/8/4Kppp/5N1N ";
  const std::string clock = "4k3/8/8/8/8/8/4P3/R3K3 w Q - 149 120";
  const struct {
    std::string fen, move, text;
  } rows[] = {
      {start, "e2e4", "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1+0.001+0+0"},
      {"8/2k2b2/R1p4r/3p1p2/P7/2P2B1P/5PPK/4R3 w - - 1 31", "a6a5",
       "8/2k2b2/2p4r/R2p1p2/P7/2P2B1P/5PPK/4R3 b - - 2 31+0.001+0+0"},
      {"rnbqkbnr/ppp1pppp/8/8/3p4/P7/1PPPPPPP/RNBQKBNR w KQkq - 0 4", "e2e4",
       "rnbqkbnr/ppp1pppp/8/8/3pP3/P7/1PPP1PPP/RNBQKBNR b KQkq e3 0 4+0.001+0+0"},
      {"8/8/8/8/k2p3Q/8/4P3/3K4 w - - 0 1", "e2e4", "8/8/8/8/k2pP2Q/8/8/3K4 b - - 0 1+0.001+0+0"},
      {castling, "e1g1", "r3k2r/8/8/8/8/8/8/R4RK1 b kq - 4 10+0.001+0+0"},
      {castling, "a1a8", "R3k2r/8/8/8/8/8/8/4K2R b Kk - 0 10+0.001+0+0"},
      {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 3 10", "e8c8",
       "2kr3r/8/8/8/8/8/8/R3K2R w KQ - 4 11+0.001+0+0"},
      {promotions + "w - - 0 1", "b7a8q", "Q1n5/P1Pk4/8/8/8/8/4Kppp/5N1N b - - 0 1+0.001+0+0"},
      {promotions + "b - - 0 1", "g2h1n", "n1n5/PPPk4/8/8/8/8/4Kp1p/5N1n w - - 0 2+0.001+0+0"},
      {"rnbqkbnr/1ppppppp/8/pP6/8/8/P1PPPPPP/RNBQKBNR w KQkq a6 0 3", "b5a6",
       "rnbqkbnr/1ppppppp/P7/8/8/8/P1PPPPPP/RNBQKBNR b KQkq - 0 3+0.001+0+0"},
      {"rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq g3 0 2", "d8h4",
       "rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3+1.0+1+0"},
      {"5k2/5P2/4K3/8/8/8/8/8 w - - 5 70", "e6f6", "5k2/5P2/5K2/8/8/8/8/8 b - - 6 70+0.5+1+0"},
      {"8/8/8/8/3k4/8/3p4/3K4 w - - 0 1", "d1d2", "8/8/8/8/3k4/8/3K4/8 b - - 0 1+0.5+1+0"},
      {clock, "a1b1", "4k3/8/8/8/8/8/4P3/1R2K3 b - - 150 120+0.5+1+0"},
      {clock, "e2e4", "4k3/8/8/8/4P3/8/8/R3K3 b Q - 0 120+0.001+0+0"},
      {start, "e2e5", std::string(start) + "+-1.0+0+1"},
      {start, "e2e4 x", std::string(start) + "+-1.0+0+1"},
      {start, "", std::string(start) + "+-1.0+0+1"}};
  for (const auto& [fen, move, text] : rows) EXPECT_EQ(answer(fen, move), text) << fen << move;
  for (const EnPassantField field : {EnPassantField::kPseudo, EnPassantField::kAlways})
    EXPECT_THAT(answer("8/8/8/8/k2p3Q/8/4P3/3K4 w - - 0 1", "e2e4", field),
                StartsWith("8/8/8/8/k2pP2Q/8/8/3K4 b - e3 0 1+"));
  EXPECT_EQ(transition_text(transition(position_of(start), "e2e5"), EnPassantField::kLegal, 0.0),
            std::string(start) + "+0.0+0+1");
}

TEST(Game, EndsAtTheFifthRepetition) {
  Game game;
  std::vector<GameResult> results;
  for (int round = 0; round < 4; ++round) {
    for (const char* move : {"g1f3", "g8f6", "f3g1", "f6g8"}) {
      EXPECT_EQ(game.result(), GameResult::kOngoing);
      EXPECT_EQ(game.claims().threefold_repetition, round >= 2) << round << move;
      const Transition answer = transition(game.position(), move, game.keys());
      ASSERT_TRUE(game.play(move));
      EXPECT_EQ(answer.result, game.result());
      EXPECT_EQ(answer.terminated, game.result() != GameResult::kOngoing);
    }
  }
  EXPECT_EQ(game.result(), GameResult::kFivefoldRepetition);
  EXPECT_FALSE(transition(game.position(), "e2e4", game.keys()).terminated);
  EXPECT_EQ(game.moves().size() + 1, game.keys().size());
}

// The first time a pawn could be captured in passing, or a king castle: it is not the same position later.
TEST(Game, RepetitionsAskWhetherTheSameMovesAreLegal) {
  const auto repeats = [](const char* fen, const std::vector<const char*>& moves) {
    Game game(position_of(fen));
    for (int round = 0; round < 2; ++round)
      for (const char* move : moves) EXPECT_TRUE(game.play(move)) << move;
    return game.claims().threefold_repetition;
  };
  const std::vector<const char*> knights = {"g8f6", "g1f3", "f6g8", "f3g1"};
  // The pawn of e4 could be captured by that of d4 the first time.
  EXPECT_FALSE(repeats("rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 3", knights));
  EXPECT_TRUE(repeats("rnbqkbnr/ppp1pppp/8/8/3pP3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 3", knights));
  EXPECT_TRUE(repeats("rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq e3 0 1", knights));
  const std::vector<const char*> rooks = {"a1b1", "a8b8", "b1a1", "b8a8"};
  EXPECT_FALSE(repeats("r3k3/p7/8/8/8/8/P7/R3K3 w Qq - 0 1", rooks));
  EXPECT_TRUE(repeats("r3k3/p7/8/8/8/8/P7/R3K3 w - - 0 1", rooks));
}

TEST(Game, ClaimsFiftyMoves) {
  EXPECT_FALSE(draw_claims(position_of("4k3/8/8/8/8/8/8/R3K3 w - - 99 90")).fifty_moves);
  EXPECT_TRUE(draw_claims(position_of("4k3/8/8/8/8/8/8/R3K3 w - - 100 90")).fifty_moves);
  // Checkmated at that moment: no claim, and mate goes before 75 moves.
  const Position mated = position_of("R3k3/8/4K3/8/8/8/8/8 b - - 150 90");
  EXPECT_FALSE(draw_claims(mated).fifty_moves);
  EXPECT_EQ(game_result(mated), GameResult::kCheckmate);
}

TEST(Game, SufficientMaterial) {
  const auto insufficient = [](const std::string& board) {
    return has_insufficient_material(position_of(board + " w - - 0 1"));
  };
  for (const char* board : {"4k3/8/8/8/8/8/8/4K3", "4k3/8/8/8/8/8/8/4KB2", "4kn2/8/8/8/8/8/8/4K3",
                            "4kb2/8/8/8/8/8/8/2B1K3", "4kb2/8/7b/8/8/8/8/B3K3"})
    EXPECT_TRUE(insufficient(board)) << board;
  for (const char* board :
       {"4k3/8/8/8/8/8/4P3/4K3", "4k3/8/8/8/8/8/8/4K2R", "4k3/8/8/8/8/8/8/4KNN1",
        "4kn2/8/8/8/8/8/8/4KN2", "4kb2/8/8/8/8/8/8/4KN2", "4kb2/8/8/8/8/8/8/4KB2",
        "3qk3/8/8/8/8/8/8/4K3"})
    EXPECT_FALSE(insufficient(board)) << board;
}

}  // namespace
}  // namespace fullbore::chess
