#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "workloads/peptide/peptide_scores.h"
#include "workloads/peptide/slot_scores.h"

namespace fullbore::peptide {

/// What one spectrum adds to a measure that is a ratio of sums.
struct RatioTerm {
  double part = 0;
  double whole = 0;
};

struct Interval {
  double low = 0;
  double high = 0;
};

/// One measure of A and of B over the same spectra. The difference is B - A.
struct PairedMeasure {
  std::string name;
  std::string unit;  ///< "" for shares
  double a = 0;
  double b = 0;
  double difference = 0;
  Interval interval;                ///< of the difference, percentile bootstrap over spectra
  std::optional<double> mcnemar_p;  ///< two-sided and exact, of measures that are right or wrong
  int64_t only_a = 0;               ///< spectra that A alone has right, and B alone; of those
  int64_t only_b = 0;
};

struct PairedOptions {
  int replicates = 2000;
  double confidence = 0.95;
  uint64_t key = 1;  ///< of the draws: the same files give the same intervals
};

struct PairedReport {
  int64_t spectra = 0;
  PairedOptions options;
  std::vector<PairedMeasure> measures;
};

/// Probability of a split at least as uneven as only_a : only_b where either is equally likely; 1 of none.
/// Source: McNemar 1947, Psychometrika 12:153; exact by the binomial distribution.
double mcnemar_exact(int64_t only_a, int64_t only_b);

/// Compares two predictions of the same spectra, in the same order: amino acid precision and recall,
/// peptide precision, equal sequences with I as L, area under the curve where both have confidences, mean
/// absolute mass error. Every spectrum is drawn with all that A and B make of it, so that what makes
/// spectra hard cancels. Source: Efron and Tibshirani 1993, An Introduction to the Bootstrap, 13.3.
PairedReport compare_peptides(std::span<const PeptideOutcome> a, std::span<const PeptideOutcome> b,
                              const PairedOptions& options = {});
/// The same of what training logs: token and sequence accuracy, both also with I as L, mass error.
PairedReport compare_slots(std::span<const SlotOutcome> a, std::span<const SlotOutcome> b,
                           const PairedOptions& options = {});

nlohmann::ordered_json to_json(const PairedReport& report);
/// The same as a table.
std::string text(const PairedReport& report);

}  // namespace fullbore::peptide
