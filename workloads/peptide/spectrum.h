#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::peptide {

/// One tandem mass spectrum as a file has it.
struct Spectrum {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::vector<double> mz;        ///< in the file's order, more than 0
  std::vector<float> intensity;  ///< one per m/z, not negative
  double precursor_mz = kUnknown;
  double precursor_intensity = kUnknown;
  /// As stated, or what it may be where that is none or several: see SpectrumReadOptions::on_bad. The first is
  /// precursor_charge.
  std::vector<int> charges;
  int precursor_charge = 0;       ///< 1 or more
  double stated_mass = kUnknown;  ///< of MSP's MW: M, MH+, M + z H+ or m/z, for writers differ
  double retention_seconds = kUnknown;
  double collision_energy = kUnknown;
  std::string title;
  std::string scan;  ///< number or native id
  std::string
      native_id;  ///< mzML's, "controllerType=0 controllerNumber=1 scan=17"; "": the format has none
  uint64_t index = 0;       ///< from 0, among all spectra of the file, those of other MS levels too
  bool is_profile = false;  ///< the file says so; the peaks have been centroided since
  std::string
      sequence;       ///< of an annotated spectrum, with its modifications as written; else empty
  uint64_t line = 0;  ///< where it begins in the file

  /// Why the spectrum is of no use, one clause; "": it is well formed. What was read of it is there.
  std::string problem;
  uint64_t problem_line = 0;

  /// The first problem counts.
  void add_problem(uint64_t at, std::string_view what) {
    if (!problem.empty()) return;
    problem = what;
    problem_line = at;
  }

  void clear() {
    std::vector<double> kept_mz = std::move(mz);
    std::vector<float> kept_intensity = std::move(intensity);
    *this = Spectrum();
    mz = std::move(kept_mz);
    intensity = std::move(kept_intensity);
    mz.clear();
    intensity.clear();
  }
};

}  // namespace fullbore::peptide
