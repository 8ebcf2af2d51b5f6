// What the rules cost for one answer of a model: rows over 4096 positions of random games; `items_per_second` are
// positions. "transition" reads the FEN and the move, plays it, judges the result and writes the answer's text.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"
#include "workloads/chess/transition.h"

namespace {

using namespace fullbore;         // NOLINT: a program, not a header
using namespace fullbore::chess;  // NOLINT: likewise

struct Query {
  std::string fen, move;
};

const std::vector<Query>& queries() {
  static const std::vector<Query> all = [] {
    std::vector<Query> made;
    uint64_t state = 1;
    Game game;
    while (made.size() < 4096) {
      const MoveList moves = legal_moves(game.position());
      if (game.result() != GameResult::kOngoing || game.moves().size() > 200) {
        game = Game();
        continue;
      }
      state = state * 6364136223846793005 + 1442695040888963407;
      const Move move =
          moves[static_cast<int>((state >> 33) % static_cast<uint64_t>(moves.size()))];
      made.push_back({fen_text(game.position()), uci_text(move)});
      game.play(move);
    }
    return made;
  }();
  return all;
}

template <typename Work>
void measure(benchmark::State& state, const Work& work) {
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(work(queries()[next]));
    next = (next + 1) % queries().size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

Position parsed(const Query& query) {
  Position position;
  (void)parse_fen(query.fen, position);
  return position;
}

void transition_row(benchmark::State& state) {
  measure(state, [](const Query& query) {
    return transition_text(transition(parsed(query), query.move)).size();
  });
}
void parse_row(benchmark::State& state) {
  measure(state, [](const Query& query) { return parsed(query).key; });
}
void moves_row(benchmark::State& state) {
  measure(state, [](const Query& query) { return legal_moves(parsed(query)).size(); });
}

BENCHMARK(parse_row)->Name("parse_fen");
BENCHMARK(moves_row)->Name("parse_fen and legal_moves");
BENCHMARK(transition_row)->Name("transition");

}  // namespace
