// What truth and rewards cost: rows over records of both recipes; `items_per_second` are answers or positions. "record of A"
// plays the move and writes the whole record.
#include <benchmark/benchmark.h>

#include <vector>

#include "workloads/chess/fen.h"
#include "workloads/chess/material_search.h"
#include "workloads/chess/record_recipes.h"
#include "workloads/chess/record_score.h"

namespace {

using namespace fullbore;         // NOLINT: a program, not a header
using namespace fullbore::chess;  // NOLINT: likewise

std::vector<ChessRecord> records_of(ChessTask task) {
  std::vector<ChessRecord> all;
  const auto ranker = search_ranker({.depth = 1}, 1);
  make_records({.recipe = RecordRecipe::games, .records = 3000}, *ranker,
               [&](ChessRecord&& record) -> Status {
                 if (record.task == task) all.push_back(std::move(record));
                 return success();
               })
      .take_or_throw();
  return all;
}

template <typename Work>
void measure(benchmark::State& state, ChessTask task, const Work& work) {
  const std::vector<ChessRecord> records = records_of(task);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(work(records[next]));
    next = (next + 1) % records.size();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()));
}

void unknown_row(benchmark::State& state) {
  measure(state, ChessTask::policy, [](const ChessRecord& record) {
    return score_policy(record.prompt, record.completion,
                        policy_truth(record.fen, {}).take_or_throw())
        .reward;
  });
}
void policy_row(benchmark::State& state) {
  measure(state, ChessTask::policy, [](const ChessRecord& record) {
    return RecordTruth::create(record).take_or_throw().score(record.completion).reward();
  });
}
void arbiter_row(benchmark::State& state) {
  measure(state, ChessTask::arbiter, [](const ChessRecord& record) {
    return RecordTruth::create(record).take_or_throw().score(record.completion).reward();
  });
}
void record_row(benchmark::State& state) {
  measure(state, ChessTask::arbiter, [](const ChessRecord& record) {
    return arbiter_record(record.fen, record.move, {},
                          arbiter_truth(record.fen, record.move).take_or_throw(), short_format())
        .completion.size();
  });
}
void search_row(benchmark::State& state) {
  measure(state, ChessTask::policy, [](const ChessRecord& record) {
    Position position;
    (void)parse_fen(record.fen, position);
    return search_moves(position).size();
  });
}

BENCHMARK(unknown_row)->Name("score of P without an engine, truth made");
BENCHMARK(policy_row)->Name("score of P, truth made");
BENCHMARK(arbiter_row)->Name("score of A, truth made");
BENCHMARK(record_row)->Name("record of A");
BENCHMARK(search_row)->Name("search of depth 3, random games");

}  // namespace
