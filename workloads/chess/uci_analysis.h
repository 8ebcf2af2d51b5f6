#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/chess/chess_record.h"
#include "workloads/chess/position.h"

namespace fullbore::chess {

/// A line "info ... multipv k score cp|mate n ... pv MOVE ...".
struct UciInfo {
  bool is_ranked = false;  ///< it has all of depth, score and pv, and its score is no bound
  int64_t depth = 0;
  int64_t rank = 1;  ///< multipv, from 1
  RankedMove move;
};
/// Any bytes; what is no such line is not ranked. Scores become pawns as RankedMove has them.
UciInfo parse_uci_info(std::string_view line);

/// Gathers the lines of one search.
class UciAnalysis {
 public:
  /// The best `moves` of the position are expected, or all legal ones where there are fewer.
  UciAnalysis(const Position& position, int64_t moves);

  void add(std::string_view line);
  /// "bestmove ...": the search is over.
  static bool is_end(std::string_view line);
  /// The last complete set of ranked moves. Failure: there is none, or its moves are not distinct legal moves of the
  /// position.
  Result<std::vector<RankedMove>> result() const;
  size_t expected() const { return expected_; }

 private:
  const Position& position_;
  size_t expected_;
  int64_t depth_ = -1;
  std::vector<RankedMove> current_;
  std::vector<RankedMove> complete_;
};

/// Why `moves` cannot be the best `expected` moves of the position; "" if they can.
std::string analysis_problem(const Position& position, size_t expected,
                             const std::vector<RankedMove>& moves);

}  // namespace fullbore::chess
