#pragma once
#include <optional>
#include <string_view>

namespace fullbore::chess {

/// How much of a wrong answer is forgiven. Source: section 3 of the specification.
enum class RewardScheme {
  weighted,    ///< W: a weighted mean of fields, in [-0.3, 1]
  graduated,   ///< G: W in five steps
  additive,    ///< S: a sum of fields; P in [-0.3, 2], A in [-0.3, 1.5]
  rank_decay,  ///< R: P by rank, with penalties for illegal moves, in [-1, 1]; A as weighted
  cliff        ///< C: A by exact position, in [-0.9, 0.54]; P as weighted
};

/// "weighted", "graduated", ... or its letter; nothing of another name.
std::optional<RewardScheme> parse_reward_scheme(std::string_view name);
std::string_view reward_scheme_name(RewardScheme scheme);

/// A similarity or an error's size in [0, 1] -> a score in [0, 1].
enum class ScoreScaling {
  linear,
  exponential,  ///< (e^{3x} - 1) / (e^3 - 1)
  sigmoid,      ///< 1 / (1 + e^{-10 (x - 1/2)})
  quadratic     ///< x^2
};
std::optional<ScoreScaling> parse_score_scaling(std::string_view name);
std::string_view score_scaling_name(ScoreScaling scaling);
double scaled_score(double x, ScoreScaling scaling);

/// What an answer without the format of its task earns.
inline constexpr double kMalformedReward = -0.3;

struct RewardOptions {
  RewardScheme scheme = RewardScheme::weighted;
  ScoreScaling fen_scaling = ScoreScaling::exponential;  ///< of A's similarity
  ScoreScaling eval_scaling = ScoreScaling::linear;      ///< of P's evaluations
  double malformed = kMalformedReward;                   ///< in [-1, 0]
  double illegal_reward = -1;  ///< that A answers for an illegal move; one recorded validator has 0
};

/// G: the step of a weighted mean `raw` in [0, 1].
double graduated_reward(double raw, bool format_valid, double malformed);

}  // namespace fullbore::chess
