#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace fullbore::peptide {

/// One tandem mass spectrum as a file has it.
struct Spectrum {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  std::vector<double> mz;        ///< in the file's order, more than 0
  std::vector<float> intensity;  ///< one per m/z, not negative
  double precursor_mz = kUnknown;
  double precursor_intensity = kUnknown;
  int precursor_charge = 0;       ///< 1 or more
  double stated_mass = kUnknown;  ///< of MSP's MW: M, MH+, M + z H+ or m/z, for writers differ
  double retention_seconds = kUnknown;
  double collision_energy = kUnknown;
  std::string title;
  std::string scan;  ///< number or native id
  std::string
      sequence;       ///< of an annotated spectrum, with its modifications as written; else empty
  uint64_t line = 0;  ///< where it begins in the file

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
