#include "workloads/chess/policy_reward.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "workloads/chess/fen.h"
#include "workloads/chess/legal_moves.h"

namespace fullbore::chess {
namespace {

// Of scheme W (section 3 of the specification).
constexpr double kBestWeight = 4.0;
constexpr double kFormatWeight = 2.0;
constexpr double kCandidatesWeight = 1.5;
constexpr double kEvalsWeight = 1.0;
constexpr double kWeights = kBestWeight + kFormatWeight + kCandidatesWeight + kEvalsWeight;
/// A rating of R is 0.1 larger where all of the listed moves stand in the engine's order.
constexpr double kOrderBonus = 0.1;

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The next run of characters that are no white space; empty at the end.
std::string_view next_word(std::string_view& text) {
  size_t begin = 0;
  while (begin < text.size() && is_space(text[begin])) ++begin;
  size_t end = begin;
  while (end < text.size() && !is_space(text[end])) ++end;
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

/// -?digits(.digits)?; digits of any number, so that the value may be infinite.
std::optional<double> parse_pawns(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view number = text.substr(negative ? 1 : 0);
  size_t points = 0;
  for (size_t i = 0; i < number.size(); ++i) {
    if (number[i] == '.') {
      if (++points > 1 || i == 0 || i + 1 == number.size()) return std::nullopt;
    } else if (number[i] < '0' || number[i] > '9') {
      return std::nullopt;
    }
  }
  if (number.empty()) return std::nullopt;
  double value = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value,
                                              std::chars_format::fixed);
  if (problem == std::errc::result_out_of_range) {
    // Without a digit before the point that counts, it is too small rather than too large.
    value = number.find_first_not_of('0') < number.find('.') ? HUGE_VAL : 0;
  }
  return negative ? -value : value;
}

bool seen_before(const PolicyAnswer& answer, size_t index) {
  const auto* begin = answer.moves.begin();
  return std::find(begin, begin + index, answer.moves[index]) != begin + index;
}

/// Of each listed move that the truth has too: where it stands in the list and in the truth.
template <class Take>
void for_each_match(const PolicyAnswer& answer, const PolicyTruth& truth, const Take& take) {
  const size_t listed = std::min(answer.move_count, PolicyAnswer::kMost);
  for (size_t i = 0; i < listed; ++i) {
    const size_t rank = truth.rank(answer.moves[i]);
    if (rank < truth.top.size() && !seen_before(answer, i)) take(i, rank);
  }
}

double size_of(size_t count) { return static_cast<double>(count); }

/// s_best, s_cand and s_eval of scheme W.
void score_fields(const PolicyAnswer& answer, const PolicyTruth& truth,
                  const RewardOptions& options, PolicyScore& score) {
  if (truth.top.empty()) {
    score.best = score.best_legal ? 0.2 : 0;
    score.candidates = 0.3 * score.legal_share;
    score.evals = 0.1;
    return;
  }
  const size_t rank = answer.best ? truth.rank(*answer.best) : truth.top.size();
  if (rank < truth.top.size())
    score.best = rank == 0 ? 1.0 : rank < 3 ? 0.7 : 0.5;
  else
    score.best = score.best_legal ? 0.2 : 0;
  size_t matches = 0;
  double evals = 0;
  for_each_match(answer, truth, [&](size_t listed, size_t place) {
    ++matches;
    if (listed >= std::min(answer.eval_count, PolicyAnswer::kMost)) return;
    const double target = truth.evals[place];
    const double error = std::abs(answer.evals[listed] - target) / (1 + std::abs(target));
    evals += scaled_score(std::max(0.0, 1 - error), options.eval_scaling);
  });
  const size_t expected = std::max(truth.top.size(), answer.move_count);
  score.candidates = size_of(matches) / size_of(expected);
  score.evals = evals / size_of(std::max(expected, answer.eval_count));
}

/// S. Its accuracy of evaluations is that of W, which compares the number of each listed move.
double additive_reward(const PolicyAnswer& answer, const PolicyTruth& truth,
                       const PolicyScore& score, const RewardOptions& options) {
  if (!answer.has_labels) return options.malformed;
  if (!score.format_valid) return 0.2;  // the structure alone
  const bool has_engine = !truth.top.empty();
  return 0.3 + 0.5 * score.candidates + 0.2 * score.evals +
         (has_engine ? (score.best_is_first ? 1.0 : 0.0) : score.best);
}

/// R. Fields that cannot be read count as missing; each part is kept within -1 and 1.
double rank_decay_reward(const PolicyAnswer& answer, const PolicyTruth& truth) {
  double best = -0.5;
  if (answer.best) {
    const size_t rank = truth.rank(*answer.best);
    best = !truth.is_legal(*answer.best) ? -1
           : rank < truth.top.size()     ? 1 - 0.2 * size_of(rank)
                                         : 0.1;
  }
  const size_t listed = std::min(answer.move_count, PolicyAnswer::kMost);
  size_t matches = 0, in_place = 0, distinct = 0, illegal = 0, sign_errors = 0, judged = 0;
  double error = 0;
  for (size_t i = 0; i < listed; ++i) {
    if (!seen_before(answer, i)) ++distinct;
    if (!truth.is_legal(answer.moves[i])) ++illegal;
  }
  for_each_match(answer, truth, [&](size_t place, size_t rank) {
    ++matches;
    if (place == rank) ++in_place;
    if (place >= std::min(answer.eval_count, PolicyAnswer::kMost)) return;
    ++judged;
    const double target = truth.evals[rank], said = answer.evals[place];
    error += std::abs(said - target);
    if (std::abs(target) > 0.2 && (said > 0) != (target > 0)) ++sign_errors;
  });
  const size_t all = truth.top.size() + distinct - matches;
  const double candidates =
      (all == 0 ? 0 : size_of(matches) / size_of(all)) +
      (truth.top.empty() ? 0 : kOrderBonus * size_of(in_place) / size_of(truth.top.size())) -
      0.3 * size_of(illegal);
  const double evals = judged == 0 ? 0 : 1 - error / size_of(judged) - 0.4 * size_of(sign_errors);
  return 0.5 * best + 0.3 * std::clamp(candidates, -1.0, 1.0) + 0.2 * std::clamp(evals, -1.0, 1.0);
}

void count_what_reports_show(const PolicyAnswer& answer, const PolicyTruth& truth,
                             PolicyScore& score) {
  score.best_move = answer.best;
  if (answer.best) {
    score.best_legal = truth.is_legal(*answer.best);
    const size_t rank = truth.rank(*answer.best);
    score.best_in_top = rank < truth.top.size();
    score.best_is_first = score.best_in_top && rank == 0;
  }
  const size_t listed = std::min(answer.move_count, PolicyAnswer::kMost);
  size_t legal = 0;
  for (size_t i = 0; i < listed; ++i)
    if (truth.is_legal(answer.moves[i])) ++legal;
  if (listed > 0) score.legal_share = size_of(legal) / size_of(answer.move_count);
  double error = 0;
  for_each_match(answer, truth, [&](size_t place, size_t rank) {
    if (place >= std::min(answer.eval_count, PolicyAnswer::kMost)) return;
    ++score.eval_errors;
    error += std::min(std::abs(answer.evals[place] - truth.evals[rank]), 1e6);
  });
  if (score.eval_errors > 0) score.eval_error = error / static_cast<double>(score.eval_errors);
}

}  // namespace

bool PolicyTruth::is_legal(Move move) const {
  return std::find(legal.begin(), legal.end(), move) != legal.end();
}

size_t PolicyTruth::rank(Move move) const {
  return static_cast<size_t>(std::find(top.begin(), top.end(), move) - top.begin());
}

Result<PolicyTruth> policy_truth(std::string_view fen, std::span<const RankedMove> top) {
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return Failure{fmt::format("FEN: {}", describe_fen_error(error, fen))};
  const MoveList moves = legal_moves(position);
  PolicyTruth truth;
  truth.legal.assign(moves.begin(), moves.end());
  for (const RankedMove& each : top) {
    const std::optional<Move> move = parse_uci_move(each.move);
    if (!move || !truth.is_legal(*move))
      return Failure{fmt::format("'{}' is no legal move of {}", each.move, fen)};
    if (truth.rank(*move) < truth.top.size())
      return Failure{fmt::format("'{}' stands twice", each.move)};
    truth.top.push_back(*move);
    truth.evals.push_back(each.eval);
  }
  return truth;
}

PolicyAnswer parse_policy_answer(std::string_view text) {
  PolicyAnswer answer;
  constexpr std::string_view kLabels[] = {"M:", "E:", "B:"};
  size_t labels = 0, best_moves = 0;
  bool clean = true;
  for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
    if (labels < 3 && word == kLabels[labels]) {
      ++labels;
    } else if (labels == 2) {
      const std::optional<double> number = parse_pawns(word);
      if (!number)
        clean = false;
      else if (answer.eval_count++ < PolicyAnswer::kMost)
        answer.evals[answer.eval_count - 1] = *number;
    } else if (const std::optional<Move> move = parse_uci_move(word); !move || labels == 0) {
      clean = false;
    } else if (labels == 1) {
      if (answer.move_count++ < PolicyAnswer::kMost) answer.moves[answer.move_count - 1] = *move;
    } else if (best_moves++ == 0) {
      answer.best = move;
    }
  }
  answer.has_labels = labels == 3;
  answer.format_valid =
      clean && labels == 3 && best_moves == 1 && answer.move_count > 0 && answer.eval_count > 0;
  return answer;
}

PolicyScore score_policy(std::string_view prompt, std::string_view completion,
                         const PolicyTruth& truth, const RewardOptions& options) {
  // The label is a word of its own: a completion that goes on without a space has no M: at all.
  constexpr std::string_view kLabel = "M:";
  std::string given_back;
  if (prompt.ends_with(kLabel)) {
    given_back.reserve(kLabel.size() + completion.size());
    given_back.append(kLabel).append(completion);
    completion = given_back;
  }
  const PolicyAnswer answer = parse_policy_answer(completion);
  PolicyScore score;
  score.format_valid = answer.format_valid;
  if (score.format_valid) {
    count_what_reports_show(answer, truth, score);
    score_fields(answer, truth, options, score);
  }
  const double raw = score.format_valid
                         ? (kBestWeight * score.best + kFormatWeight +
                            kCandidatesWeight * score.candidates + kEvalsWeight * score.evals) /
                               kWeights
                         : 0;
  switch (options.scheme) {
    case RewardScheme::graduated:
      score.reward = graduated_reward(raw, score.format_valid, options.malformed);
      break;
    case RewardScheme::additive:
      score.reward = additive_reward(answer, truth, score, options);
      break;
    case RewardScheme::rank_decay: score.reward = rank_decay_reward(answer, truth); break;
    case RewardScheme::weighted:
    case RewardScheme::cliff:
      score.reward = score.format_valid ? -0.3 + 1.3 * raw : options.malformed;
      break;
  }
  return score;
}

}  // namespace fullbore::chess
