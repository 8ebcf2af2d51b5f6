#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/base/draw_unit.h"
#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/peak_runs.h"

namespace fullbore::peptide {

/// What disturbs a spectrum, drawn by counter from (key, index): what is drawn for one purpose does not depend
/// on how much is drawn for another, nor on what else is drawn at all. Memory of one thread, allocated when
/// it is made.
class SpectrumCorruption {
 public:
  /// The upper half of a draw's counter.
  enum class Purpose : uint64_t {
    peptide,
    intensity,
    dropout,
    mass_error,
    variation,
    suppression,
    noise
  };
  /// Peaks below the least that variation and suppression leave, 0.01: synthetic ones are raised to it,
  /// those of a file may be weaker and are left so.
  enum class WeakPeaks : uint8_t { raised, kept };

  /// words: the most that are drawn at once. apply() needs two, one a peak and one more, and one a peak of
  /// noise.
  SpectrumCorruption(size_t words, WeakPeaks weak_peaks);

  /// Do the settings ask for nothing?
  static bool is_off(const SpectrumSettings& settings);

  void begin(uint64_t key, uint64_t index);
  /// At least `count` words, good until the next draw.
  const uint64_t* draw(Purpose purpose, size_t count);
  /// Is this one of the spectra that nothing disturbs?
  bool draw_clean(const SpectrumSettings& settings);

  /// Disturbs peaks and adds noise; all go to `runs`. Of `mz` and `intensity`, which are overwritten, ends[i]
  /// ends run i. In this order: error of each m/z and of the precursor; variation of each intensity;
  /// suppression; dropout; noise in [50 Da, mass]. Returns the precursor's mass.
  double apply(double mass, std::span<double> mz, std::span<float> intensity,
               std::span<const size_t> ends, const SpectrumSettings& settings, PeakRuns& runs);

 private:
  const double* draw_normals(Purpose purpose, size_t count);
  void change_intensities(std::span<float> intensity, const SpectrumSettings& settings);
  void add_noise(double mass, const SpectrumSettings& settings, PeakRuns& runs);

  const DrawUnit unit_ = draw_units().front();
  WeakPeaks weak_peaks_;
  uint64_t key_ = 0;
  uint64_t index_ = 0;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> radius_;
  std::vector<double> normals_;
};

}  // namespace fullbore::peptide
