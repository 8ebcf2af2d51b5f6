#include "workloads/chess/arbiter_reward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "workloads/chess/fen.h"
#include "workloads/chess/transition.h"

namespace fullbore::chess {
namespace {

// Of scheme W (section 3 of the specification).
constexpr double kFormatWeight = 4.0;
constexpr double kFenWeight = 3.0;
constexpr double kFlagsWeight = 2.0;
constexpr double kRewardWeight = 1.0;
constexpr double kWeights = kFormatWeight + kFenWeight + kFlagsWeight + kRewardWeight;

/// Longer answers are compared by their beginning: no FEN is as long, and a distance takes the product of both lengths.
constexpr size_t kMostCompared = 256;

std::string_view trimmed_answer(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::optional<double> parse_reward(std::string_view text) {
  const std::string_view number = text.substr(text.starts_with('-') ? 1 : 0);
  const size_t point = number.find('.');
  const std::string_view whole = number.substr(0, point);
  const auto is_digits = [](std::string_view digits) {
    return !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
  };
  if (!is_digits(whole) || (point != number.npos && !is_digits(number.substr(point + 1))))
    return std::nullopt;
  double value = 0;
  const auto [end, problem] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (problem == std::errc::result_out_of_range)
    return text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  return value;
}

/// The place of the last of `fields` fields of a FEN, text.size() without so many.
size_t end_of_field(std::string_view fen, int fields) {
  size_t at = 0;
  for (int i = 0; i < fields; ++i) {
    at = fen.find(' ', at + (i > 0));
    if (at == fen.npos) return fen.size();
  }
  return at;
}

double reward_accuracy(double said, double truth) {
  const double error = std::abs(said - truth);
  return error < 0.01 ? 1 : error < 0.1 ? 0.7 : error < 0.3 ? 0.4 : 0.1;
}

/// C: whether the position is right decides; schema and validity add up to 0.04.
double cliff_reward(const ParsedArbiterAnswer& answer, const ArbiterScore& score,
                    const ArbiterAnswer& truth) {
  double reward = -0.7;
  if (score.exact)
    reward = 0.5;
  else if (answer.answer.fen.substr(0, end_of_field(answer.answer.fen, 5)) ==
           truth.fen.substr(0, end_of_field(truth.fen, 5)))
    reward = -0.3;
  if (score.format_valid) reward += 0.03;
  Position position;
  const FenError error = parse_fen(answer.answer.fen, position);
  if (error == FenError::kNone) return reward + 0.01;
  const std::string_view board =
      std::string_view(answer.answer.fen).substr(0, end_of_field(answer.answer.fen, 1));
  const bool has_kings = std::count(board.begin(), board.end(), 'k') == 1 &&
                         std::count(board.begin(), board.end(), 'K') == 1;
  const bool is_parsed = error >= FenError::kCastlingSquares || error == FenError::kPawnRank ||
                         error == FenError::kTooManyPieces;
  return has_kings && is_parsed ? reward : reward - 0.2;
}

}  // namespace

int64_t edit_distance(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
  if (a.empty() || b.empty()) return static_cast<int64_t>(std::max(a.size(), b.size()));
  // row[j]: from the part of `a` so far to the first j of `b`.
  std::array<int64_t, kMostCompared + 1> few{};
  std::vector<int64_t> many;
  int64_t* row = few.data();
  if (b.size() >= few.size()) {
    many.resize(b.size() + 1);
    row = many.data();
  }
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

double text_similarity(std::string_view a, std::string_view b) {
  const size_t longer = std::max(a.size(), b.size());
  if (longer == 0) return 1;
  return 1 - static_cast<double>(edit_distance(a, b)) / static_cast<double>(longer);
}

Result<ArbiterAnswer> arbiter_truth(std::string_view fen, std::string_view move,
                                    double illegal_reward) {
  Position position;
  if (const FenError error = parse_fen(fen, position); error != FenError::kNone)
    return Failure{fmt::format("FEN: {}", describe_fen_error(error, fen))};
  const Transition next = transition(position, move);
  if (next.truncated) return ArbiterAnswer{std::string(fen), illegal_reward, false, true};
  return ArbiterAnswer{fen_text(next.position), next.reward, next.terminated, false};
}

ParsedArbiterAnswer parse_arbiter_answer(std::string_view completion) {
  std::string_view rest = trimmed_answer(completion);
  std::array<std::string_view, 4> sections;
  for (size_t i = 0; i < sections.size(); ++i) {
    const size_t plus = rest.find('+');
    if (plus == rest.npos && i + 1 < sections.size()) return {};
    sections[i] = rest.substr(0, plus);
    rest.remove_prefix(plus == rest.npos ? rest.size() : plus + 1);
  }
  const auto is_flag = [](std::string_view text) { return text == "0" || text == "1"; };
  const std::optional<double> reward = parse_reward(sections[1]);
  if (!rest.empty() || sections[0].find('/') == std::string_view::npos || !reward ||
      !is_flag(sections[2]) || !is_flag(sections[3]))
    return {};
  return {true, {std::string(sections[0]), *reward, sections[2] == "1", sections[3] == "1"}};
}

ArbiterScore score_arbiter(std::string_view completion, const ArbiterAnswer& truth,
                           const RewardOptions& options) {
  const ParsedArbiterAnswer parsed = parse_arbiter_answer(completion);
  ArbiterScore score;
  score.format_valid = parsed.format_valid;
  score.reward = options.malformed;
  if (options.scheme == RewardScheme::cliff && !parsed.format_valid) score.reward = -0.9;
  if (!parsed.format_valid) return score;
  const ArbiterAnswer& answer = parsed.answer;
  score.similarity = std::max(answer.fen.size(), truth.fen.size()) > kMostCompared
                         ? 0
                         : text_similarity(answer.fen, truth.fen);
  score.exact = answer.fen == truth.fen;
  score.core = answer.fen.substr(0, end_of_field(answer.fen, 4)) ==
               truth.fen.substr(0, end_of_field(truth.fen, 4));
  score.reward_right = std::abs(answer.reward - truth.reward) < 0.01;
  score.terminated_right = answer.terminated == truth.terminated;
  score.truncated_right = answer.truncated == truth.truncated;
  score.fen = scaled_score(score.similarity, options.fen_scaling);
  score.reward_score = reward_accuracy(answer.reward, truth.reward);
  score.flags = 0.5 * score.terminated_right + 0.5 * score.truncated_right;
  const double raw = (kFormatWeight + kFenWeight * score.fen + kFlagsWeight * score.flags +
                      kRewardWeight * score.reward_score) /
                     kWeights;
  switch (options.scheme) {
    case RewardScheme::graduated:
      score.reward = graduated_reward(raw, true, options.malformed);
      break;
    case RewardScheme::additive:
      score.reward = 0.1 +
                     (score.exact               ? 1.0
                      : score.similarity >= 0.5 ? 0.5 * score.similarity
                                                : 0.0) +
                     0.3 * score.reward_score + 0.1 * score.flags;
      break;
    case RewardScheme::cliff: score.reward = cliff_reward(parsed, score, truth); break;
    case RewardScheme::weighted:
    case RewardScheme::rank_decay: score.reward = -0.3 + 1.3 * raw; break;
  }
  return score;
}

}  // namespace fullbore::chess
