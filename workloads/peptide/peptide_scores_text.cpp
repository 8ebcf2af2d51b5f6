#include <algorithm>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "workloads/peptide/peptide_scores.h"

namespace fullbore::peptide {
namespace {

using nlohmann::ordered_json;

/// JSON has no NaN: what is not known is null.
ordered_json number(double value) {
  return std::isnan(value) ? ordered_json() : ordered_json(value);
}

ordered_json to_json(const PeptideCounts& counts) {
  return {{"spectra", counts.spectra},
          {"unscorable", counts.unscorable},
          {"predicted", counts.predicted},
          {"aa_precision", counts.residue_precision()},
          {"aa_recall", counts.residue_recall()},
          {"peptide_precision", counts.peptide_precision()},
          {"residues_predicted", counts.predicted_residues},
          {"residues_true", counts.true_residues},
          {"residues_matched", counts.matched_residues},
          {"peptides_matched", counts.matched},
          {"sequences_equal", counts.equal},
          {"sequences_equal_i_as_l", counts.equal_but_leucine}};
}

ordered_json curve_json(const std::vector<CurvePoint>& curve, size_t most) {
  ordered_json points = ordered_json::array();
  const size_t count = std::min(curve.size(), std::max<size_t>(1, most));
  for (size_t i = 1; i <= count; ++i) {
    const CurvePoint& point = curve[i * curve.size() / count - 1];
    const bool is_finite = std::isfinite(point.confidence);
    points.push_back({{"coverage", point.coverage},
                      {"precision", point.precision},
                      {"confidence", is_finite ? ordered_json(point.confidence) : ordered_json()}});
  }
  return points;
}

std::string row(const char* name, const std::string& value) {
  return fmt::format("{:<36}{}\n", name, value);
}

std::string percent(double share, int64_t part, int64_t whole) {
  return fmt::format("{:.2f} %  ({} of {})", 100 * share, part, whole);
}

std::string percent(int64_t part, int64_t whole) {
  return percent(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole), part,
                 whole);
}

}  // namespace

ordered_json to_json(const PeptideReport& report, size_t most_curve_points) {
  const PrecursorTolerance& tolerance = report.options.precursor;
  ordered_json json = to_json(report.all);
  json["aupc"] = report.area ? ordered_json(*report.area) : ordered_json();
  json["mass_error_ppm"] = {{"spectra", report.mass_errors},
                            {"mean_absolute", number(report.mean_absolute_ppm)},
                            {"median_absolute", number(report.median_absolute_ppm)}};
  json["precursor_rule"] = {{"ppm", tolerance.ppm},
                            {"isotopes", {tolerance.first_isotope, tolerance.last_isotope}},
                            {"predictions_within", report.within_precursor},
                            {"peptides_matched_within", report.matched_within_precursor}};
  json["match_rule"] = {{"cumulative_da", report.options.match.cumulative},
                        {"residue_da", report.options.match.residue},
                        {"i_as_l", true}};
  for (size_t bucket = 0; bucket < kBuckets; ++bucket)
    json["by_length"][kBucketNames[bucket]] = to_json(report.by_length[bucket]);
  json["curve"] = curve_json(report.curve, most_curve_points);
  return json;
}

std::string text(const PeptideReport& report) {
  const PeptideCounts& all = report.all;
  const PrecursorTolerance& tolerance = report.options.precursor;
  std::string lines =
      row("spectra", fmt::format("{}, {} with a prediction", all.spectra, all.predicted));
  lines += row("amino acid precision",
               percent(all.residue_precision(), all.matched_residues, all.predicted_residues));
  lines += row("amino acid recall",
               percent(all.residue_recall(), all.matched_residues, all.true_residues));
  lines += row("peptide precision", percent(all.peptide_precision(), all.matched, all.spectra));
  lines += row("area under precision-coverage curve",
               report.area ? fmt::format("{:.4f}", *report.area) : "not known: no confidences");
  lines += row("sequences equal", percent(all.equal, all.spectra));
  lines += row("sequences equal, I as L", percent(all.equal_but_leucine, all.spectra));
  if (report.mass_errors > 0) {
    lines +=
        row("mass error, ppm", fmt::format("mean {:.3f}, median {:.3f}, absolute",
                                           report.mean_absolute_ppm, report.median_absolute_ppm));
    lines += row("within the precursor's tolerance",
                 percent(report.within_precursor, report.mass_errors));
    lines += row("of these peptides matched",
                 percent(report.matched_within_precursor, report.within_precursor));
  }
  lines += "\nresidues     spectra  aa precision  aa recall  peptide precision\n";
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    const PeptideCounts& counts = report.by_length[bucket];
    if (counts.spectra == 0) continue;
    lines += fmt::format("{:<12}{:>8}{:>12.2f} %{:>9.2f} %{:>17.2f} %\n", kBucketNames[bucket],
                         counts.spectra, 100 * counts.residue_precision(),
                         100 * counts.residue_recall(), 100 * counts.peptide_precision());
  }
  return lines +
         fmt::format(
             "\nResidues match by mass: within {} Da, and {} Da of the mass from an end; I and L "
             "are one.\nPrecursor: {} ppm, isotopes {} to {}.\n",
             report.options.match.residue, report.options.match.cumulative, tolerance.ppm,
             tolerance.first_isotope, tolerance.last_isotope);
}

}  // namespace fullbore::peptide
