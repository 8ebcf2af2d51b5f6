#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fullbore/lab/quality/quality_metric.h"

namespace fullbore {

/// Is B no worse than A? By pairs: the same seed for both, so that what a seed does to either is not taken for a
/// difference. A test of non-inferiority: that B is worse by the margin or more is the hypothesis, and it has to be
/// refuted. Of a balance (Better::same) both directions have to be: two one-sided tests. Too few pairs refute nothing.
/// Differences of pairs are taken for normal, as means over a held-out set are nearly.
///
/// Source: Schuirmann 1987, "A comparison of the two one-sided tests procedure and the power approach"; Wellek 2010,
/// "Testing Statistical Hypotheses of Equivalence and Noninferiority", sections 1.3 and 3.1.
struct EquivalenceOptions {
  double alpha =
      0.05;  ///< chance that what is worse by exactly the margin passes; at most that, of all metrics together
  double power = 0.9;   ///< chance wanted that a B that does not differ passes
  double alarm = 0.01;  ///< chance that a B that does not differ is called worse in any metric
  /// The spread is that of the first so many pairs, after which the number of all was chosen; 0: of all. Choosing by the
  /// spread alone, and keeping it, leaves alpha exact: Stein 1945, "A two-sample test for a linear hypothesis whose power
  /// is independent of the variance".
  int64_t pilot = 0;
};

enum class Verdict : uint8_t {
  passed,     ///< no worse: shown
  failed,     ///< worse: shown, and by the margin or more as far as can be estimated
  undecided,  ///< neither
};
std::string verdict_name(Verdict verdict);

/// What was found of one metric. Numbers that pairs are too few for are NaN.
struct EquivalenceResult {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  QualityMetric metric;
  std::string unit = "seeds";  ///< what the pairs are of
  int64_t pairs = 0;
  double mean_a = kUnknown, mean_b = kUnknown;
  double difference = kUnknown;            ///< mean of b - a
  double low = kUnknown, high = kUnknown;  ///< of the difference, with confidence 1 - 2 alpha
  double spread = kUnknown;                ///< standard deviation of the differences
  double margin = kUnknown;                ///< in the metric's unit, absolute
  double p_margin = kUnknown;  ///< of a difference like this or better, were B worse by the margin
  double p_worse =
      kUnknown;  ///< of one like this or worse, were there none; Holm's, of all metrics
  double p_equal = kUnknown;  ///< of one as large in either direction, were there none
  double power = kUnknown;   ///< to pass with these pairs and this spread, were there no difference
  int64_t seeds_needed = 0;  ///< pairs for the power wanted; 0: not known, or beyond kMostSeeds
  Verdict verdict = Verdict::undecided;
  std::string reason;  ///< why, for people
};
inline constexpr int64_t kMostSeeds = 100'000;

/// A metric's figures in runs of A and of B, by pair.
struct PairedFigures {
  QualityMetric metric;
  std::vector<double> a, b;  ///< equally many
  std::string missing = {};  ///< why there are none, or not all; then nothing is decided
};

struct EquivalenceReport {
  std::vector<EquivalenceResult> metrics;
  Verdict verdict = Verdict::undecided;  ///< all must pass; one failed is failed
};

/// All metrics must pass, so each is tested at alpha itself (intersection-union: Berger 1982); what fails is told at
/// `alarm` by Holm's procedure. A metric passes if it is refuted that B is worse by the margin, and these pairs have the
/// power wanted, or B is better beyond doubt.
EquivalenceReport test_no_worse(std::span<const PairedFigures> figures,
                                const EquivalenceOptions& options = {});

/// What results mean together: Holm's p-values and the verdicts, which follow from the rest. A result with a reason is
/// undecided.
EquivalenceReport conclude(std::vector<EquivalenceResult> results,
                           const EquivalenceOptions& options);

/// The pairs that give a test with this power, of which `pilot` (at least 2) have told the spread; at least as many as
/// that; 0: more than kMostSeeds. `spread` and `margin` in one unit. Of a test with the spread of all pairs if
/// !keeps_spread.
int64_t pairs_needed(const QualityMetric& metric, double spread, double margin, int64_t pilot,
                     bool keeps_spread, const EquivalenceOptions& options);

/// p-values of several hypotheses, made such that the chance of any false alarm is kept. In the order given; NaN stays, and
/// counts for none. Source: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
std::vector<double> holm(std::span<const double> p);

}  // namespace fullbore
