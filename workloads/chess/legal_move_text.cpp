#include "workloads/chess/legal_move_text.h"

#include <algorithm>
#include <utility>

#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

constexpr std::string_view kEvals = "E:";

// As the grammar of answers has them.
bool is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

}  // namespace

LegalMoveText::LegalMoveText(const Position& position, bool is_listing)
    : part_(is_listing ? Part::moves : Part::before) {
  std::vector<std::string> legal;
  for (const Move move : legal_moves(position)) legal.push_back(uci_text(move));
  std::ranges::sort(legal);
  legal_ = std::make_shared<const std::vector<std::string>>(std::move(legal));
}

bool LegalMoveText::is_legal() const { return std::ranges::binary_search(*legal_, word_); }

bool LegalMoveText::may_become_legal() const {
  const auto first = std::ranges::lower_bound(*legal_, word_);
  return first != legal_->end() && first->starts_with(word_);
}

bool LegalMoveText::take(char byte) {
  const char last = std::exchange(last_, byte);
  switch (part_) {
    case Part::before:
      if (last == 'M' && byte == ':') part_ = Part::moves;
      return true;
    case Part::evals:
      if (last == 'B' && byte == ':') part_ = Part::best;
      return true;
    case Part::behind: return true;
    case Part::moves:
    case Part::best: break;
  }
  const bool is_best = part_ == Part::best;
  if (is_space(byte)) {
    if (word_.empty()) return true;
    if (!is_legal()) return false;
    word_.clear();
    if (is_best) part_ = Part::behind;
    return true;
  }
  word_ += byte;
  if (!is_best && word_ == kEvals) {
    word_.clear();
    part_ = Part::evals;
    return true;
  }
  return may_become_legal() || (!is_best && kEvals.starts_with(word_));
}

bool LegalMoveText::take(std::string_view bytes) {
  return std::ranges::all_of(bytes, [&](char byte) { return take(byte); });
}

bool LegalMoveText::may_end() const {
  if (part_ == Part::best) return is_legal();
  return part_ != Part::moves || word_.empty() || is_legal();
}

}  // namespace fullbore::chess
