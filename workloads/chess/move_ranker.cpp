#include "workloads/chess/move_ranker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "fullbore/base/threads.h"
#include "workloads/chess/fen.h"

namespace fullbore::chess {
namespace {

EngineAnalysis search(const std::string& fen, const MaterialSearchOptions& options) {
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return Failure{describe_fen_error(error, fen)};
  std::vector<RankedMove> moves = search_moves(position, options);
  if (moves.empty()) return Failure{fmt::format("{}: there is no legal move", fen)};
  return moves;
}

class SearchRanker : public MoveRanker {
 public:
  SearchRanker(const MaterialSearchOptions& options, int threads)
      : options_(options), threads_(threads) {}

  std::vector<EngineAnalysis> rank(std::span<const std::string> fens) override {
    std::vector<EngineAnalysis> all(fens.size(), EngineAnalysis(Failure{""}));
    threads_.parallel_for(static_cast<int64_t>(fens.size()), [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        all[i] = search(fens[i], options_);
    });
    return all;
  }
  std::string name() const override { return fmt::format("search to depth {}", options_.depth); }

 private:
  MaterialSearchOptions options_;
  ThreadPool threads_;
};

class EngineRanker : public MoveRanker {
 public:
  explicit EngineRanker(const EngineOptions& options)
      : limit_(options.depth > 0 ? fmt::format("to depth {}", options.depth)
                                 : fmt::format("for {} nodes", options.nodes)),
        pool_(options) {}

  std::vector<EngineAnalysis> rank(std::span<const std::string> fens) override {
    std::vector<std::shared_future<EngineAnalysis>> futures;
    for (const std::string& fen : fens) futures.push_back(pool_.submit(fen));
    std::vector<EngineAnalysis> all;
    for (const auto& future : futures) all.push_back(future.get());
    return all;
  }
  std::string name() const override { return fmt::format("{} {}", pool_.engine_name(), limit_); }
  EngineCounts counts() const override { return pool_.counts(); }
  std::vector<std::string> take_notices() override { return pool_.take_notices(); }

 private:
  std::string limit_;
  EnginePool pool_;
};

}  // namespace

std::unique_ptr<MoveRanker> search_ranker(const MaterialSearchOptions& options, int threads) {
  return std::make_unique<SearchRanker>(options, threads);
}

std::unique_ptr<MoveRanker> engine_ranker(const EngineOptions& options) {
  return std::make_unique<EngineRanker>(options);
}

std::unique_ptr<MoveRanker> open_ranker(const std::string& truth, EngineOptions engine,
                                        int threads) {
  const size_t colon = std::min(truth.find(':'), truth.size());
  const std::string kind = truth.substr(0, colon);
  const bool is_search = kind == "search";
  const int most = is_search ? 6 : 100;
  int depth = is_search ? MaterialSearchOptions().depth : 4;
  bool is_read = is_search || kind == "stockfish";
  if (is_read && colon < truth.size()) {
    const char* const end = truth.data() + truth.size();
    const auto [stop, problem] = std::from_chars(truth.data() + colon + 1, end, depth);
    is_read = problem == std::errc() && stop == end && depth >= 1 && depth <= most;
  }
  if (!is_read)
    throw UsageError(fmt::format(
        "truth '{}': search, search:1 to search:6, stockfish, or stockfish:1 to stockfish:100 (the "
        "number is the depth in half-moves) was expected",
        truth));
  if (is_search) return search_ranker({.depth = depth, .moves = engine.moves}, threads);
  engine.depth = depth;
  engine.nodes = 0;
  return engine_ranker(engine);
}

}  // namespace fullbore::chess
