#include "workloads/chess/reward_scheme.h"

#include <array>
#include <cmath>
#include <utility>

namespace fullbore::chess {
namespace {

struct NamedScheme {
  RewardScheme scheme;
  std::string_view name;
  std::string_view letter;
};
constexpr std::array kSchemes = {NamedScheme{RewardScheme::weighted, "weighted", "W"},
                                 NamedScheme{RewardScheme::graduated, "graduated", "G"},
                                 NamedScheme{RewardScheme::additive, "additive", "S"},
                                 NamedScheme{RewardScheme::rank_decay, "rank_decay", "R"},
                                 NamedScheme{RewardScheme::cliff, "cliff", "C"}};

constexpr std::array<std::pair<ScoreScaling, std::string_view>, 4> kScalings = {
    {{ScoreScaling::linear, "linear"},
     {ScoreScaling::exponential, "exponential"},
     {ScoreScaling::sigmoid, "sigmoid"},
     {ScoreScaling::quadratic, "quadratic"}}};

}  // namespace

std::optional<RewardScheme> parse_reward_scheme(std::string_view name) {
  for (const NamedScheme& each : kSchemes)
    if (name == each.name || name == each.letter) return each.scheme;
  return std::nullopt;
}

std::string_view reward_scheme_name(RewardScheme scheme) {
  return kSchemes[static_cast<size_t>(scheme)].name;
}

std::optional<ScoreScaling> parse_score_scaling(std::string_view name) {
  for (const auto& [scaling, known] : kScalings)
    if (name == known) return scaling;
  return std::nullopt;
}

std::string_view score_scaling_name(ScoreScaling scaling) {
  return kScalings[static_cast<size_t>(scaling)].second;
}

double scaled_score(double x, ScoreScaling scaling) {
  constexpr double kSteepness = 3;
  switch (scaling) {
    case ScoreScaling::linear: break;
    case ScoreScaling::exponential: return std::expm1(kSteepness * x) / std::expm1(kSteepness);
    case ScoreScaling::sigmoid: return 1 / (1 + std::exp(-10 * (x - 0.5)));
    case ScoreScaling::quadratic: return x * x;
  }
  return x;
}

double graduated_reward(double raw, bool format_valid, double malformed) {
  if (raw < 0.2) return format_valid ? 0.2 : malformed;
  if (raw < 0.4) return 0.2;
  if (raw < 0.6) return 0.4;
  if (raw < 0.8) return 0.6;
  return raw < 0.95 ? 0.8 : 1.0;
}

}  // namespace fullbore::chess
