#include "fullbore/lab/tuning/race.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/lab/quality/student_t.h"
#include "fullbore/monitor/sample_statistics.h"

namespace fullbore {
namespace {

/// Between processes of one program on a machine that does nothing else; what is seen soon outweighs it.
constexpr double kGuessedDeviation = 0.01;
constexpr double kGuessedFreedom = 2;
/// Of 95 %, and of 1 % on one side.
constexpr double kDroppingTail = 0.025;
constexpr double kTakingTail = 0.01;

double mean_of(std::span<const HeatFigure> heats) {
  double sum = 0;
  for (const HeatFigure& each : heats) sum += each.difference;
  return sum / static_cast<double>(heats.size());
}

}  // namespace

HeatFigure heat_figure(const MeasuredRun& incumbent, const MeasuredRun& candidate) {
  const std::vector<double> ratios =
      log_time_ratios(incumbent.step_seconds, incumbent.turns, candidate.step_seconds);
  if (ratios.empty())
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  // A median's standard deviation is that of a mean times sqrt(pi / 2), of normal values; quartiles tell theirs without the far ones.
  const Spread spread = spread_of(ratios);
  constexpr double kQuartilesApart = 1.349;
  constexpr double kMedianFactor = 1.2533;
  const double deviation = (spread.upper_quartile - spread.lower_quartile) / kQuartilesApart;
  return {spread.median + std::log(incumbent.samples_per_step / candidate.samples_per_step),
          kMedianFactor * deviation / std::sqrt(static_cast<double>(ratios.size()))};
}

void HeatSpread::add(std::span<const HeatFigure> heats) {
  if (heats.size() < 2) return;
  const double mean = mean_of(heats);
  for (const HeatFigure& each : heats)
    squares_ += (each.difference - mean) * (each.difference - mean);
  freedom_ += static_cast<double>(heats.size() - 1);
}

double HeatSpread::freedom() const { return kGuessedFreedom + freedom_; }

double HeatSpread::variance() const {
  return (kGuessedFreedom * kGuessedDeviation * kGuessedDeviation + squares_) / freedom();
}

Standing standing(std::span<const HeatFigure> heats, HeatSpread spread, double tail) {
  double within = 0;
  for (const HeatFigure& each : heats) within += each.error * each.error;
  const auto count = static_cast<double>(heats.size());
  const double variance = std::max(spread.variance(), within / count);
  const double half = student_critical(tail, spread.freedom()) * std::sqrt(variance / count);
  const double mean = mean_of(heats);
  return {mean, mean - half, mean + half};
}

std::vector<RaceState> race_states(const std::vector<std::vector<HeatFigure>>& heats,
                                   const HeatSpread& before, bool exclusive) {
  HeatSpread spread = before;
  for (const std::vector<HeatFigure>& each : heats) spread.add(each);
  size_t best = heats.size();
  for (size_t i = 0; i < heats.size(); ++i)
    if (!heats[i].empty() && (best == heats.size() || mean_of(heats[i]) < mean_of(heats[best])))
      best = i;
  std::vector<RaceState> states(heats.size(), RaceState::running);
  for (size_t i = 0; i < heats.size(); ++i) {
    if (heats[i].empty()) continue;
    const Standing now = standing(heats[i], spread, kDroppingTail);
    if (now.low > 0) {
      states[i] = RaceState::slower;
      continue;
    }
    if (now.low > -kLeastGain) {
      states[i] = RaceState::no_difference;
      continue;
    }
    if (exclusive && i != best) {
      // Both share the incumbent, so the difference of the two varies no more than either does.
      const Standing ahead = standing(heats[best], spread, kDroppingTail);
      if (now.difference - ahead.difference >
          std::max(now.high - now.difference, ahead.high - ahead.difference)) {
        states[i] = RaceState::behind;
        continue;
      }
    }
    if (std::ssize(heats[i]) < kLeastHeats) continue;
    const double tail = kTakingTail / static_cast<double>(heats.size());
    if (now.difference < -kLeastGain && standing(heats[i], spread, tail).high < 0)
      states[i] = RaceState::faster;
    else if (now.difference > -kLeastGain || std::ssize(heats[i]) >= kMostHeats)
      states[i] = RaceState::no_difference;
  }
  return states;
}

}  // namespace fullbore
