#include "workloads/peptide/curriculum.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"

namespace fullbore::peptide {
namespace {

// Beyond this a fragment of a wide draw (6.7 standard deviations) would have no mass left.
constexpr double kMostPpm = 1e5;
constexpr int kMostResidues = 1000;
constexpr int kMostNoise = 100000;

void check_stage(const CurriculumStage& stage) {
  const auto refuse = [&](std::string_view field, const auto& value, std::string_view expected) {
    throw UsageError(fmt::format("curriculum stage '{}': {} is {}, expected {}", stage.name, field,
                                 value, expected));
  };
  const SpectrumSettings& spectra = stage.spectra;
  if (spectra.min_length < 2 || spectra.min_length > kMostResidues)
    refuse("min_length", spectra.min_length, "2 to 1000 residues");
  if (spectra.max_length < spectra.min_length || spectra.max_length > kMostResidues)
    refuse("max_length", spectra.max_length,
           fmt::format("min_length ({}) to 1000 residues", spectra.min_length));
  if (spectra.noise_peaks < 0 || spectra.noise_peaks > kMostNoise)
    refuse("noise_peaks", spectra.noise_peaks, "0 to 100000");
  const auto check_probability = [&](std::string_view field, double value) {
    if (!(value >= 0 && value <= 1)) refuse(field, value, "a probability");
  };
  check_probability("peak_dropout", spectra.peak_dropout);
  check_probability("clean_data_ratio", spectra.clean_data_ratio);
  check_probability("signal_suppression", spectra.signal_suppression);
  if (!(spectra.high_noise_share <= 1))
    refuse("high_noise_share", spectra.high_noise_share, "a probability");
  if (!(spectra.mass_error_ppm >= 0 && spectra.mass_error_ppm <= kMostPpm))
    refuse("mass_error_ppm", spectra.mass_error_ppm, "0 to 100000");
  if (!(spectra.intensity_variation >= 0 && spectra.intensity_variation <= 100))
    refuse("intensity_variation", spectra.intensity_variation, "0 to 100");
  const auto check_weight = [&](std::string_view field, double value) {
    if (!(value >= 0 && value <= 1e6)) refuse(field, value, "0 to 1e6");
  };
  check_weight("spectrum_weight", stage.spectrum_weight);
  check_weight("precursor_weight", stage.precursor_weight);
}

}  // namespace

Curriculum default_curriculum() {
  const auto stage = [](std::string name, uint64_t first_step, int max_length, int noise_peaks,
                        double dropout, double ppm, double variation, double weight) {
    return CurriculumStage{std::move(name),
                           first_step,
                           {.max_length = max_length,
                            .noise_peaks = noise_peaks,
                            .peak_dropout = dropout,
                            .mass_error_ppm = ppm,
                            .intensity_variation = variation},
                           weight};
  };
  return {stage("warm-up", 0, 10, 0, 0, 0, 0, 0),
          stage("spectrum loss", 8000, 10, 0, 0, 0, 0, 0.10),
          stage("gentle noise", 16000, 12, 1, 0.02, 2, 0, 0.10),
          stage("gradual", 22000, 12, 2, 0.05, 5, 0, 0.12),
          stage("moderate", 28000, 15, 5, 0.10, 10, 0, 0.15),
          stage("realistic", 38000, 18, 8, 0.15, 15, 0.2, 0.15)};
}

Curriculum late_curriculum() {
  constexpr size_t kStages = 10;
  constexpr int kMaxLength[kStages] = {10, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  constexpr int kNoise[kStages] = {0, 0, 1, 2, 3, 5, 6, 7, 8, 10};
  constexpr double kDropout[kStages] = {0, 0, .02, .05, .08, .10, .12, .13, .14, .15};
  constexpr double kPpm[kStages] = {0, 0, 2, 5, 7.5, 10, 12, 13, 14, 15};
  constexpr double kVariation[kStages] = {0, 0, 0, 0, 0, 0, 0, .1, .15, .2};
  constexpr double kWeight[kStages] = {0, .1, .1, .12, .13, .14, .14, .15, .15, .15};
  Curriculum curriculum;
  for (size_t i = 0; i < kStages; ++i)
    curriculum.push_back({fmt::format("stage {}", i + 1),
                          10000 * i,
                          {.max_length = kMaxLength[i],
                           .noise_peaks = kNoise[i],
                           .peak_dropout = kDropout[i],
                           .mass_error_ppm = kPpm[i],
                           .intensity_variation = kVariation[i]},
                          kWeight[i]});
  return curriculum;
}

std::optional<Curriculum> named_curriculum(std::string_view name) {
  if (name == "default") return default_curriculum();
  if (name == "late") return late_curriculum();
  return {};
}

void check_curriculum(const Curriculum& curriculum) {
  if (curriculum.empty()) throw UsageError("a curriculum has at least one stage");
  if (curriculum.front().first_step != 0)
    throw UsageError(
        fmt::format("curriculum stage '{}': first_step is {}, expected 0 for the first",
                    curriculum.front().name, curriculum.front().first_step));
  for (size_t i = 0; i < curriculum.size(); ++i) {
    check_stage(curriculum[i]);
    if (i > 0 && curriculum[i].first_step <= curriculum[i - 1].first_step)
      throw UsageError(fmt::format(
          "curriculum stage '{}': first_step is {}, expected more than the {} of the stage before",
          curriculum[i].name, curriculum[i].first_step, curriculum[i - 1].first_step));
  }
}

size_t stage_at(const Curriculum& curriculum, uint64_t step) {
  const auto after = std::upper_bound(
      curriculum.begin(), curriculum.end(), step,
      [](uint64_t s, const CurriculumStage& stage) { return s < stage.first_step; });
  return static_cast<size_t>(after - curriculum.begin()) - 1;
}

}  // namespace fullbore::peptide
