#include "workloads/chess/puzzles.h"

#include <fmt/format.h>

#include "fullbore/base/check.h"
#include "workloads/chess/game.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {

std::optional<Puzzle> puzzle_of(const PgnGame& game) {
  if (!game.problem.empty() || !game.has_start || game.moves.empty()) return {};
  Puzzle puzzle{game.start, {}, {}};
  for (const PgnMove& each : game.moves) puzzle.line.push_back(each.move);
  for (const char* tag : {"Event", "Site"})
    if (const std::string_view value = game.tag(tag); !value.empty() && value != "?")
      puzzle.name += fmt::format("{}{}", puzzle.name.empty() ? "" : ", ", value);
  if (puzzle.name.empty()) puzzle.name = fmt::format("line {}", game.line);
  return puzzle;
}

PuzzleScore score_puzzles(std::span<const Puzzle> puzzles, const MoveProposer& propose) {
  PuzzleScore score;
  score.puzzles = std::ssize(puzzles);
  std::vector<Position> positions;
  std::vector<size_t> open;
  for (size_t i = 0; i < puzzles.size(); ++i) {
    positions.push_back(puzzles[i].position);
    open.push_back(i);
  }
  for (size_t ply = 0; !open.empty(); ply += 2) {
    const std::vector<std::string> texts = propose(positions);
    FB_CHECK(texts.size() == positions.size(), "{} moves for {} positions", texts.size(),
             positions.size());
    std::vector<Position> next;
    std::vector<size_t> still_open;
    for (size_t i = 0; i < open.size(); ++i) {
      ++score.moves;
      const std::optional<Move> move = parse_uci_move(texts[i]);
      if (!move || !is_legal(positions[i], *move)) {
        ++score.illegal_moves;
        continue;
      }
      const std::vector<Move>& line = puzzles[open[i]].line;
      Position after = positions[i];
      make_move(after, *move);
      const bool mates = game_result(after) == GameResult::kCheckmate;
      if (!mates && *move != line[ply]) continue;
      if (ply == 0) ++score.first_move;
      if (mates || ply + 2 >= line.size()) {
        ++score.solved;
        continue;
      }
      make_move(after, line[ply + 1]);
      next.push_back(after);
      still_open.push_back(open[i]);
    }
    positions = std::move(next);
    open = std::move(still_open);
  }
  return score;
}

}  // namespace fullbore::chess
