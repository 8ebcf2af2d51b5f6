#include "workloads/peptide/peptide_scores.h"

#include <algorithm>

#include "workloads/peptide/ions.h"

namespace fullbore::peptide {
namespace {

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

int32_t count(std::span<const int32_t> ids) { return static_cast<int32_t>(ids.size()); }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void add_mass_errors(std::span<const PeptideOutcome> outcomes, PeptideReport& report) {
  std::vector<double> errors;
  double sum = 0;
  for (const PeptideOutcome& outcome : outcomes) {
    if (std::isnan(outcome.mass_error_ppm)) continue;
    errors.push_back(std::abs(outcome.mass_error_ppm));
    sum += errors.back();
    if (!outcome.is_within_precursor.value_or(false)) continue;
    ++report.within_precursor;
    if (outcome.is_matched) ++report.matched_within_precursor;
  }
  report.mass_errors = static_cast<int64_t>(errors.size());
  if (errors.empty()) return;
  report.mean_absolute_ppm = sum / static_cast<double>(errors.size());
  report.median_absolute_ppm = median(std::move(errors));
}

void add_curve(std::span<const PeptideOutcome> outcomes, PeptideReport& report) {
  std::vector<RankedPrediction> ranked;
  for (const PeptideOutcome& outcome : outcomes) {
    if (outcome.is_predicted && std::isnan(outcome.confidence)) return;
    ranked.push_back(
        {outcome.is_predicted ? outcome.confidence : -std::numeric_limits<double>::infinity(),
         outcome.is_matched});
  }
  report.curve = precision_coverage_curve(ranked);
  report.area = area_under_curve(report.curve);
}

}  // namespace

size_t length_bucket(int64_t residues) {
  size_t bucket = 0;
  while (residues > kBucketLimits[bucket]) ++bucket;
  return bucket;
}

void PeptideCounts::add(const PeptideOutcome& outcome) {
  ++spectra;
  unscorable += outcome.is_unscorable ? 1 : 0;
  predicted += outcome.is_predicted ? 1 : 0;
  predicted_residues += outcome.predicted_residues;
  true_residues += outcome.true_residues;
  matched_residues += outcome.matched_residues;
  matched += outcome.is_matched ? 1 : 0;
  equal += outcome.is_equal ? 1 : 0;
  equal_but_leucine += outcome.is_equal_but_leucine ? 1 : 0;
}

double PeptideCounts::residue_precision() const {
  return share(matched_residues, predicted_residues);
}
double PeptideCounts::residue_recall() const { return share(matched_residues, true_residues); }
double PeptideCounts::peptide_precision() const { return share(matched, spectra); }

PeptideOutcome score_peptide(const ScoredPeptide& pair, const ResidueAlphabet& alphabet,
                             const PeptideScoreOptions& options) {
  PeptideOutcome outcome;
  outcome.is_unscorable = pair.unreadable_truth > 0;
  outcome.true_residues = outcome.is_unscorable ? pair.unreadable_truth : count(pair.truth);
  outcome.predicted_residues = count(pair.predicted);
  outcome.is_predicted = !pair.predicted.empty();
  if (!outcome.is_predicted) return outcome;
  if (!outcome.is_unscorable) {
    const std::vector<bool> matches =
        match_residues(residue_masses(pair.predicted, alphabet),
                       residue_masses(pair.truth, alphabet), options.match);
    const auto matched = std::count(matches.begin(), matches.end(), true);
    outcome.matched_residues = static_cast<int32_t>(matched);
    outcome.is_matched = outcome.matched_residues == static_cast<int32_t>(matches.size());
    outcome.is_equal = are_equal(pair.predicted, pair.truth, false);
    outcome.is_equal_but_leucine = are_equal(pair.predicted, pair.truth, true);
  }
  outcome.confidence = pair.confidence;
  if (std::isnan(pair.precursor_mass)) return outcome;
  const double mass = neutral_mass(alphabet, pair.predicted);
  outcome.mass_error_ppm = mass_error_ppm(mass, pair.precursor_mass);
  outcome.is_within_precursor = is_within(options.precursor, mass, pair.precursor_mass);
  return outcome;
}

PeptideReport report_peptides(std::span<const PeptideOutcome> outcomes,
                              const PeptideScoreOptions& options) {
  PeptideReport report;
  report.options = options;
  for (const PeptideOutcome& outcome : outcomes) {
    report.all.add(outcome);
    report.by_length[length_bucket(outcome.true_residues)].add(outcome);
  }
  add_mass_errors(outcomes, report);
  add_curve(outcomes, report);
  return report;
}

const PeptideOutcome& PeptideScorer::add(const ScoredPeptide& pair) {
  outcomes_.push_back(score_peptide(pair, *alphabet_, options_));
  return outcomes_.back();
}

}  // namespace fullbore::peptide
