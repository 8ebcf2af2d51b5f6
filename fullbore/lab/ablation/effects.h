#pragma once
#include <limits>
#include <span>
#include <vector>

namespace fullbore {

/// Figures of arms that were measured side by side, once for each seed: by arm, the base first, then by seed. NaN: there is none.
using SeedTable = std::vector<std::vector<double>>;

/// How much one process differs from the next where nothing differs between them: memory lies elsewhere, and the machine has its
/// minutes. What seeds and arms do is taken out: the mean square of the residuals of a two-way layout without interactions, pooled
/// over tables. Arms with a figure missing are left out. From four seeds on even and odd ones have a layout each: an arm's place in
/// the order of starts is another there (TurnOptions::last_first), and what a place does to an arm is no spread of processes.
/// Source: Montgomery 2017, "Design and Analysis of Experiments", section 4.1, the randomized complete block design with seeds as
/// its blocks.
struct ErrorVariance {
  double variance = std::numeric_limits<double>::quiet_NaN();
  double freedom = 0;  ///< degrees; 0: nothing is known
};
ErrorVariance error_variance(std::span<const SeedTable> tables);

/// Some processes have bad luck: memory lies so that all their steps take 5 to 10 % longer. From ten seeds on a figure counts no
/// further than 1.5 standard deviations from what its arm and its seed let expect, the deviation told by the median residual:
/// Huber's M-estimates of the same layouts, whose pseudo-observations these tables are. Source: Huber and Ronchetti 2009, "Robust
/// Statistics", sections 7.6 and 7.8.
struct ClippedTables {
  std::vector<SeedTable>
      tables;  ///< as they were where seeds are fewer, and arms with a figure missing
  double variance_factor = 1;  ///< of their error variance, for what was clipped
};
ClippedTables clip_outliers(std::span<const SeedTable> tables);

/// An arm's difference from the base.
struct Effect {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  double difference = kUnknown;            ///< even and odd seeds have half each of this mean
  double low = kUnknown, high = kUnknown;  ///< 95 %
  double p = kUnknown;  ///< of a difference as large in either direction, were there none
  double p_corrected =
      kUnknown;  ///< Holm's, of all arms of the experiment; the caller's to fill in
  double detectable =
      kUnknown;  ///< the least that is found with probability 0.8 at 0.05, corrected
  int seeds = 0;
  bool is_shown() const { return p_corrected < 0.05; }
};

/// Of differences arm - base, by seed, each with twice the variance. `tests`: how many arms are compared with the base.
Effect effect(std::span<const double> differences, const ErrorVariance& error, int tests);

/// Fills in p_corrected of all that are known.
void correct(std::span<Effect*> effects);

}  // namespace fullbore
