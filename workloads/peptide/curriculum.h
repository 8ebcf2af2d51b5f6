#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

/// What synthetic spectra are like. Every corruption is off at 0.
struct SpectrumSettings {
  int min_length = 7;  ///< residues, uniform in [min_length, max_length]
  int max_length = 10;
  int noise_peaks = 0;             ///< added to every spectrum
  double peak_dropout = 0;         ///< probability that a peak is missing
  double mass_error_ppm = 0;       ///< standard deviation, of peaks and of the precursor
  double intensity_variation = 0;  ///< standard deviation of a factor of mean 1
  double clean_data_ratio = 0;     ///< probability that a spectrum has no corruption at all
  double signal_suppression = 0;  ///< probability that a fragment's intensity falls to [0.01, 0.05]
  /// Share of noise peaks whose intensity is in [0.2, 1]; that of the others is in [0, 0.1]. Negative:
  /// one tier of noise, all in [0.01, 0.2].
  double high_noise_share = -1;
};

/// A stage of training: data and weights of the losses switch together, at a step.
struct CurriculumStage {
  std::string name;
  uint64_t first_step = 0;  ///< 0-based optimiser step
  SpectrumSettings spectra;
  double spectrum_weight = 0;   ///< of the spectrum-matching loss
  double precursor_weight = 0;  ///< of the precursor-mass loss
};
/// Ordered by first_step, the first at 0. The last stage has no end.
using Curriculum = std::vector<CurriculumStage>;

/// Six stages over 50,000 steps: warm-up, spectrum loss, gentle, gradual, moderate, realistic.
Curriculum default_curriculum();
/// Ten stages of 10,000 steps.
Curriculum late_curriculum();
/// "default", "late".
std::optional<Curriculum> named_curriculum(std::string_view name);

/// UsageError that names the stage and the field, unless the stages can be followed.
void check_curriculum(const Curriculum& curriculum);

/// The stage of a step: index into the curriculum.
size_t stage_at(const Curriculum& curriculum, uint64_t step);

}  // namespace fullbore::peptide
