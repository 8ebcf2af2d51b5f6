#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/lab/ablation/measured_run.h"

namespace fullbore {

/// A candidate against the incumbent in one heat: both are processes of their own that took turns.
struct HeatFigure {
  double difference = 0;  ///< log(seconds per sample / the incumbent's); negative: faster
  double error = 0;       ///< standard deviation of that, as far as turns tell
};
/// Both must be complete. NaN where no turn counts.
HeatFigure heat_figure(const MeasuredRun& incumbent, const MeasuredRun& candidate);

/// How far candidates that do not differ lie apart from heat to heat. Two processes of one program differ for as long as they live,
/// so what counts is heats, and not steps. Of candidates measured before there is a spread within each; before anything is measured, a
/// guess with the weight of two degrees of freedom stands in its place.
class HeatSpread {
 public:
  /// The heats of a candidate that is done with.
  void add(std::span<const HeatFigure> heats);
  double variance() const;
  double freedom() const;

 private:
  double squares_ = 0;
  double freedom_ = 0;
};

/// What is known of a candidate.
struct Standing {
  double difference = 0;
  double low = 0, high = 0;
};
/// `tail`: of the distribution beyond either end, 0.025 for 95 %. There must be a heat. Student's t, over heats.
Standing standing(std::span<const HeatFigure> heats, HeatSpread spread, double tail);

/// Of candidates that race: what a heat decides.
enum class RaceState : uint8_t {
  running,
  slower,         ///< its interval lies above the incumbent's
  behind,         ///< likewise above that of the best of its coordinate
  no_difference,  ///< it cannot be faster by what is worth a change, or is not after kLeastHeats
  faster,
};
/// A gain below this is not worth a change.
inline constexpr double kLeastGain = 0.005;
inline constexpr int64_t kLeastHeats = 3;
inline constexpr int64_t kMostHeats = 5;

/// The state of each, by its heats; those that have none are left running. `exclusive`: one can be chosen, so that those behind the
/// best are dropped. Faster is who is so at 1 % over all candidates (Bonferroni), in no fewer than kLeastHeats.
std::vector<RaceState> race_states(const std::vector<std::vector<HeatFigure>>& heats,
                                   const HeatSpread& before, bool exclusive);

}  // namespace fullbore
