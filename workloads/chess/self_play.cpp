#include "workloads/chess/self_play.h"

#include <algorithm>
#include <numeric>

#include "fullbore/base/check.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

struct Board {
  size_t index = 0;
  PlayedGame played;
  bool is_over = false;
};

bool ends(const Game& game, const SelfPlayOptions& options, GameEnding& ending) {
  if (game.result() != GameResult::kOngoing) {
    ending = GameEnding::kOver;
    return true;
  }
  const DrawClaims claims = game.claims();
  if (options.draws_are_claimed && (claims.fifty_moves || claims.threefold_repetition)) {
    ending = GameEnding::kClaimed;
    return true;
  }
  ending = GameEnding::kTooLong;
  return std::ssize(game.moves()) >= options.most_half_moves;
}

// Plays a text, or what stands in for it.
void play(Board& board, const std::string& text, const SelfPlayOptions& options) {
  Game& game = board.played.game;
  if (!game.play(text)) {
    ++board.played.illegal_moves;
    if (!options.replaces_illegal_moves) {
      board.played.ending = GameEnding::kIllegalMove;
      board.is_over = true;
      return;
    }
    MoveList moves = legal_moves(game.position());
    moves.sort();
    game.play(moves[0]);
  }
  board.is_over = ends(game, options, board.played.ending);
}

void count(const PlayedGame& played, SelfPlayCounts& counts) {
  const bool white_moves = played.game.position().to_move == Side::kWhite;
  const GameResult result = played.game.result();
  if (played.ending == GameEnding::kTooLong) {
    ++counts.unfinished;
  } else if (played.ending == GameEnding::kIllegalMove ||
             (played.ending == GameEnding::kOver && result == GameResult::kCheckmate)) {
    ++(white_moves ? counts.black_wins : counts.white_wins);
  } else {
    ++counts.draws;
  }
  if (played.ending == GameEnding::kOver) ++counts.results[static_cast<size_t>(result)];
}

}  // namespace

double SelfPlayCounts::illegal_share() const {
  return half_moves == 0 ? 0 : static_cast<double>(illegal_moves) / static_cast<double>(half_moves);
}

double SelfPlayCounts::mean_length() const {
  const int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return lengths.empty() ? 0 : static_cast<double>(sum) / static_cast<double>(lengths.size());
}

SelfPlayCounts play_games(std::span<const Position> starts, const MoveProposer& propose,
                          const SelfPlayOptions& options,
                          const std::function<void(size_t, PlayedGame&&)>& finished) {
  SelfPlayCounts counts;
  counts.games = std::ssize(starts);
  counts.lengths.resize(starts.size());
  std::vector<Board> boards;
  std::vector<Position> positions;
  size_t next = 0;
  while (true) {
    while (next < starts.size() &&
           std::ssize(boards) < std::max<int64_t>(1, options.games_at_once)) {
      Board board{next, {Game(starts[next]), {}, 0}};
      board.is_over = ends(board.played.game, options, board.played.ending);
      boards.push_back(std::move(board));
      ++next;
    }
    positions.clear();
    for (const Board& board : boards)
      if (!board.is_over) positions.push_back(board.played.game.position());
    if (!positions.empty()) {
      const std::vector<std::string> texts = propose(positions);
      FB_CHECK(texts.size() == positions.size(), "{} moves for {} positions", texts.size(),
               positions.size());
      counts.half_moves += std::ssize(positions);
      size_t text = 0;
      for (Board& board : boards)
        if (!board.is_over) play(board, texts[text++], options);
    }
    for (Board& board : boards) {
      if (!board.is_over) continue;
      count(board.played, counts);
      counts.illegal_moves += board.played.illegal_moves;
      counts.lengths[board.index] = std::ssize(board.played.game.moves());
      if (finished) finished(board.index, std::move(board.played));
    }
    std::erase_if(boards, [](const Board& board) { return board.is_over; });
    if (boards.empty() && next == starts.size()) return counts;
  }
}

}  // namespace fullbore::chess
