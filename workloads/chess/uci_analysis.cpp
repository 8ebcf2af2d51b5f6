#include "workloads/chess/uci_analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "fullbore/base/excerpt.h"
#include "fullbore/data/text_lines.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr double kMateCentipawns = 100000;

std::optional<int64_t> parse_whole(std::string_view text) {
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || std::abs(value) > 1000000)
    return std::nullopt;
  return value;
}

}  // namespace

UciInfo parse_uci_info(std::string_view line) {
  UciInfo info;
  if (take_word(line) != "info") return info;
  bool has_depth = false, has_score = false, is_bound = false;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    if (word == "string") return info;  // the rest is for people
    if (word == "lowerbound" || word == "upperbound") is_bound = true;
    if (word == "pv") {
      const std::string_view move = take_word(line);
      info.move.move = move;
      info.is_ranked = has_depth && has_score && !is_bound && parse_uci_move(move).has_value();
      return info;
    }
    if (word != "depth" && word != "multipv" && word != "cp" && word != "mate") continue;
    const std::optional<int64_t> value = parse_whole(take_word(line));
    if (!value) return info;
    if (word == "depth") {
      info.depth = *value;
      has_depth = true;
    } else if (word == "multipv") {
      info.rank = *value;
    } else {
      const double number = static_cast<double>(*value);
      const double mate = kMateCentipawns - std::abs(number);
      info.move.eval = (word == "cp" ? number : number > 0 ? mate : -mate) / 100;
      has_score = true;
    }
  }
  return info;
}

UciAnalysis::UciAnalysis(const Position& position, int64_t moves)
    : position_(position),
      expected_(
          std::min(static_cast<size_t>(moves), static_cast<size_t>(count_legal_moves(position)))) {}

void UciAnalysis::add(std::string_view line) {
  UciInfo info = parse_uci_info(line);
  if (!info.is_ranked) return;
  if (info.rank == 1) {
    current_.clear();
    depth_ = info.depth;
  }
  if (info.depth != depth_ || info.rank != static_cast<int64_t>(current_.size()) + 1 ||
      current_.size() == expected_)
    return;
  current_.push_back(std::move(info.move));
  if (current_.size() == expected_) complete_ = current_;
}

bool UciAnalysis::is_end(std::string_view line) { return take_word(line) == "bestmove"; }

Result<std::vector<RankedMove>> UciAnalysis::result() const {
  if (const std::string problem = analysis_problem(position_, expected_, complete_);
      !problem.empty())
    return Failure{problem};
  return complete_;
}

std::string analysis_problem(const Position& position, size_t expected,
                             const std::vector<RankedMove>& moves) {
  if (moves.size() != expected) return fmt::format("{} of {} ranked moves", moves.size(), expected);
  for (size_t i = 0; i < moves.size(); ++i) {
    const std::optional<Move> move = parse_uci_move(moves[i].move);
    if (!move || !is_legal(position, *move))
      return fmt::format("'{}' is no legal move", excerpt(moves[i].move));
    for (size_t j = 0; j < i; ++j)
      if (moves[j].move == moves[i].move) return fmt::format("'{}' stands twice", moves[i].move);
    if (!std::isfinite(moves[i].eval)) return "an evaluation is not finite";
  }
  return "";
}

}  // namespace fullbore::chess
