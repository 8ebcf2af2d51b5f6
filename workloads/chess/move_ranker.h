#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workloads/chess/engine_pool.h"
#include "workloads/chess/material_search.h"

namespace fullbore::chess {

/// What the truth about P records comes from: the best moves of many positions.
class MoveRanker {
 public:
  virtual ~MoveRanker() = default;
  /// Of each position, in the order given.
  virtual std::vector<EngineAnalysis> rank(std::span<const std::string> fens) = 0;
  /// "search to depth 3", "Stockfish 15.1 to depth 4".
  virtual std::string name() const = 0;
  virtual EngineCounts counts() const { return {}; }
  /// As EnginePool::take_notices().
  virtual std::vector<std::string> take_notices() { return {}; }
};

/// search_moves() on `threads` threads, at least 1.
std::unique_ptr<MoveRanker> search_ranker(const MaterialSearchOptions& options, int threads);
/// DataError, UsageError: as EnginePool.
std::unique_ptr<MoveRanker> engine_ranker(const EngineOptions& options);

/// "search", "search:3", "stockfish" or "stockfish:4", the number being the depth in half-moves. `engine`: its path and
/// whatever else is not the depth. UsageError: another text; DataError: as EnginePool.
std::unique_ptr<MoveRanker> open_ranker(const std::string& truth, EngineOptions engine,
                                        int threads);

}  // namespace fullbore::chess
