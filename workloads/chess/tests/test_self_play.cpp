#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/self_play.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;

Position position_of(const std::string& fen) {
  Position position;
  EXPECT_EQ(parse_fen(fen, position), FenError::kNone) << fen;
  return position;
}

// A legal move that depends on the position alone.
std::string mixed_move(const Position& position) {
  const MoveList moves = legal_moves(position);
  return uci_text(moves[static_cast<int>(position.key % static_cast<uint64_t>(moves.size()))]);
}

MoveProposer by(const std::function<std::string(const Position&)>& move, size_t* most = nullptr) {
  return [move, most](std::span<const Position> positions) {
    if (most != nullptr) *most = std::max(*most, positions.size());
    std::vector<std::string> texts;
    for (const Position& each : positions) texts.push_back(move(each));
    return texts;
  };
}

TEST(SelfPlay, DependsNotOnHowManyPlayAtOnce) {
  std::vector<Position> starts;
  for (const Move move : legal_moves(start_position())) {
    starts.push_back(start_position());
    make_move(starts.back(), move);
  }
  std::map<int64_t, std::vector<int64_t>> lengths;
  for (const int64_t at_once : {1, 7, 64}) {
    size_t most = 0;
    const SelfPlayCounts counts =
        play_games(starts, by(mixed_move, &most), {.games_at_once = at_once});
    EXPECT_EQ(counts.games, 20);
    EXPECT_LE(static_cast<int64_t>(most), at_once);
    EXPECT_EQ(counts.white_wins + counts.black_wins + counts.draws + counts.unfinished, 20);
    EXPECT_EQ(counts.illegal_moves, 0);
    int64_t sum = 0;
    for (const int64_t length : counts.lengths) sum += length;
    EXPECT_EQ(counts.half_moves, sum);
    EXPECT_EQ(counts.mean_length(), static_cast<double>(sum) / 20);
    lengths[at_once] = counts.lengths;
  }
  EXPECT_EQ(lengths[1], lengths[7]);
  EXPECT_EQ(lengths[1], lengths[64]);
}

TEST(SelfPlay, CountsEveryEnding) {
  const Position mate = position_of("6k1/5ppp/8/8/8/8/8/R3K3 w - - 0 1");
  const Position black_mates =
      position_of("rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2");
  const Position stalemate = position_of("5k2/5P2/4K3/8/8/8/8/8 w - - 5 70");
  const Position over = position_of("8/8/8/8/3k4/8/3K4/8 b - - 0 1");
  const Position claims = position_of("4k3/8/8/8/8/8/8/R3K3 w - - 98 90");
  const auto move = [](const Position& position) -> std::string {
    const std::string board = fen_text(position);
    if (board.starts_with("6k1")) return "a1a8";
    if (board.starts_with("rnbqkbnr/pppp1")) return "d8h4";
    if (board.starts_with("5k2")) return "e6f6";
    if (board.starts_with("rnbqkbnr/pppppppp")) return "e2e5";
    return mixed_move(position);
  };
  const std::vector<Position> starts = {mate, black_mates,      stalemate,
                                        over, start_position(), claims};
  std::map<size_t, GameEnding> endings;
  const SelfPlayCounts counts =
      play_games(starts, by(move), {.games_at_once = 2, .draws_are_claimed = true},
                 [&](size_t index, PlayedGame&& played) { endings[index] = played.ending; });
  EXPECT_EQ(counts.white_wins, 1);
  EXPECT_EQ(counts.black_wins, 2) << "by mate, and by White's illegal move";
  EXPECT_EQ(counts.draws, 3);
  EXPECT_EQ(counts.illegal_moves, 1);
  EXPECT_THAT(counts.lengths, ElementsAre(1, 1, 1, 0, 0, 2));
  EXPECT_EQ(counts.half_moves, 6);
  EXPECT_EQ(counts.results[static_cast<size_t>(GameResult::kCheckmate)], 2);
  EXPECT_EQ(counts.results[static_cast<size_t>(GameResult::kStalemate)], 1);
  EXPECT_EQ(endings[4], GameEnding::kIllegalMove);
  EXPECT_EQ(endings[5], GameEnding::kClaimed);
  EXPECT_NEAR(counts.illegal_share(), 1.0 / 6, 1e-12);
}

TEST(SelfPlay, ReplacesIllegalMovesWhereItMay) {
  const std::vector<Position> starts = {start_position()};
  const SelfPlayCounts counts = play_games(
      starts, by([](const Position&) { return "junk"; }),
      {.most_half_moves = 10, .replaces_illegal_moves = true},
      [](size_t, PlayedGame&& played) { EXPECT_EQ(uci_text(played.game.moves()[0]), "a2a3"); });
  EXPECT_EQ(counts.illegal_moves, 10);
  EXPECT_EQ(counts.unfinished, 1);
  EXPECT_THAT(counts.lengths, ElementsAre(10));
  EXPECT_EQ(play_games({}, by(mixed_move)).games, 0);
}

}  // namespace
}  // namespace fullbore::chess
