#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/peptide/match.h"
#include "workloads/peptide/precision_curve.h"

namespace fullbore::peptide {

inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/// A spectrum's predicted and true peptide.
struct ScoredPeptide {
  std::span<const int32_t> predicted;  ///< residues and terminal modifications; empty: none
  std::span<const int32_t> truth;      ///< the same, at least one residue
  double confidence = kNoValue;        ///< any scale, the highest first; NaN: not known
  double precursor_mass = kNoValue;    ///< measured, neutral, Da; NaN: not known
  /// Residues of a truth that cannot be read, of which `truth` has nothing: whatever is predicted is wrong. 0: the
  /// truth can be read.
  int32_t unreadable_truth = 0;
};

/// What was found of one spectrum.
struct PeptideOutcome {
  int32_t predicted_residues = 0;
  int32_t true_residues = 0;
  int32_t matched_residues = 0;
  bool is_predicted = false;
  bool is_matched = false;     ///< all residues of both, by mass
  bool is_unscorable = false;  ///< the truth cannot be read; nothing matches it
  bool is_equal = false;       ///< the same ids
  bool is_equal_but_leucine = false;
  double confidence = kNoValue;
  double mass_error_ppm = kNoValue;  ///< signed, against the measured precursor; NaN: not known
  std::optional<bool> is_within_precursor;  ///< nothing: no prediction or no measured mass
};

/// Peptides of at most this many residues; the last bucket takes the rest.
inline constexpr int32_t kBucketLimits[] = {12, 17, std::numeric_limits<int32_t>::max()};
inline constexpr const char* kBucketNames[] = {"up to 12", "13 to 17", "18 and more"};
inline constexpr size_t kBuckets = std::size(kBucketLimits);
size_t length_bucket(int64_t residues);

struct PeptideScoreOptions {
  MatchTolerance match;
  PrecursorTolerance precursor;
};

/// Counts over spectra, of which all shares follow; shares of nothing are 0.
struct PeptideCounts {
  int64_t spectra = 0;
  int64_t unscorable = 0;  ///< of `spectra`, all of them wrong
  int64_t predicted = 0;
  int64_t predicted_residues = 0;
  int64_t true_residues = 0;
  int64_t matched_residues = 0;
  int64_t matched = 0;
  int64_t equal = 0;
  int64_t equal_but_leucine = 0;
  void add(const PeptideOutcome& outcome);

  double residue_precision() const;  ///< matched over predicted residues
  double residue_recall() const;     ///< matched over true residues
  double peptide_precision() const;  ///< matched over all spectra: at full coverage also the recall
};

/// The field's measures of a set of spectra (NovoBench, arXiv:2406.11906).
struct PeptideReport {
  PeptideScoreOptions options;
  PeptideCounts all;
  PeptideCounts by_length[kBuckets];  ///< by residues of the truth
  std::optional<double> area;         ///< under the precision-coverage curve; nothing where a
                                      ///< prediction has no confidence
  std::vector<CurvePoint> curve;      ///< empty as well then
  int64_t mass_errors = 0;            ///< spectra with a prediction and a measured mass
  double mean_absolute_ppm = kNoValue;
  double median_absolute_ppm = kNoValue;
  int64_t within_precursor = 0;  ///< of `mass_errors`
  int64_t matched_within_precursor = 0;
};

PeptideOutcome score_peptide(const ScoredPeptide& pair, const ResidueAlphabet& alphabet,
                             const PeptideScoreOptions& options = {});
PeptideReport report_peptides(std::span<const PeptideOutcome> outcomes,
                              const PeptideScoreOptions& options = {});

/// Is fed pairs, and gives the report. Keeps one outcome a spectrum, for paired comparisons.
class PeptideScorer {
 public:
  explicit PeptideScorer(const ResidueAlphabet& alphabet, PeptideScoreOptions options = {})
      : alphabet_(&alphabet), options_(options) {}
  const PeptideOutcome& add(const ScoredPeptide& pair);
  std::span<const PeptideOutcome> outcomes() const { return outcomes_; }
  PeptideReport report() const { return report_peptides(outcomes_, options_); }

 private:
  const ResidueAlphabet* alphabet_;
  PeptideScoreOptions options_;
  std::vector<PeptideOutcome> outcomes_;
};

/// Of the curve at most `most_curve_points`, evenly spread, its last always among them.
nlohmann::ordered_json to_json(const PeptideReport& report, size_t most_curve_points = 100);
/// The same as a table, without the curve.
std::string text(const PeptideReport& report);

}  // namespace fullbore::peptide
