#include "workloads/peptide/peak_lines.h"

#include <fmt/format.h>

#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

std::optional<std::string> add_peak(double mz, double intensity, Spectrum& spectrum) {
  constexpr double kMostMz = 1e6;
  if (!(mz > 0 && mz <= kMostMz)) return fmt::format("m/z is {}, expected more than 0", mz);
  if (!(intensity >= 0 && intensity <= 1e30))
    return fmt::format("intensity is {}, expected 0 or more", intensity);
  if (spectrum.mz.size() == kMostPeaksOfSpectrum)
    return fmt::format("the spectrum has more than {} peaks", kMostPeaksOfSpectrum);
  spectrum.mz.push_back(mz);
  spectrum.intensity.push_back(static_cast<float>(intensity));
  return {};
}

std::optional<std::string> add_peak_line(std::string_view line, Spectrum& spectrum) {
  std::string_view rest = line;
  const std::string_view mz_text = take_word(rest);
  const std::string_view intensity_text = take_word(rest);
  const std::optional<double> mz = parse_number(mz_text);
  if (!mz) return fmt::format("m/z is {}, expected a number", quote_text(mz_text));
  if (intensity_text.empty())
    return fmt::format("the peak {} has no intensity", quote_text(mz_text));
  const std::optional<double> intensity = parse_number(intensity_text);
  if (!intensity)
    return fmt::format("intensity is {}, expected a number", quote_text(intensity_text));
  return add_peak(*mz, *intensity, spectrum);
}

}  // namespace fullbore::peptide
