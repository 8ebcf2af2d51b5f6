#pragma once
#include <algorithm>
#include <cmath>
#include <string_view>

#include "tests/fuzz/memory_file.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::testing {

/// Reads any bytes as spectra: each is well formed and can be prepared, or a message names the file.
inline void check_spectrum_file(const uint8_t* data, size_t size, peptide::SpectrumFormat format) {
  using namespace fullbore::peptide;  // NOLINT: a function of fuzz targets alone
  if (size == 0) return;
  const MemoryFile file(data, size);
  const ResidueAlphabet alphabet(MassTable::full, massive_kb_modifications());
  SpectrumPreparation preparation({.min_peaks = 0, .min_length = 1}, alphabet);
  PreparedSpectrum prepared;
  Spectrum spectrum;
  for (const auto& [default_charge, on_bad] :
       {std::pair(0, BadSpectrum::fail), std::pair(2, BadSpectrum::skip),
        std::pair(0, BadSpectrum::try_charges)}) {
    uint64_t bad = 0;
    auto reader = open_spectra(file.path(), {.default_charge = default_charge,
                                             .format = format,
                                             .on_bad = on_bad,
                                             .left_out = [&](const Spectrum& each) {
                                               require(!each.problem.empty());
                                               ++bad;
                                             }});
    if (!reader.ok()) {
      require(reader.error().starts_with(file.path()));
      continue;
    }
    for (;;) {
      const Result<bool> more = reader.value()->next(spectrum);
      if (!more.ok()) require(more.error().starts_with(file.path()));
      if (!more.ok() || !more.value()) break;
      require(spectrum.mz.size() == spectrum.intensity.size());
      for (const double mz : spectrum.mz) require(mz > 0 && std::isfinite(mz));
      for (const float intensity : spectrum.intensity) require(intensity >= 0);
      require(spectrum.precursor_charge >= 1 && spectrum.precursor_charge <= kMostCharge);
      require(spectrum.problem.empty() && spectrum.charges.front() == spectrum.precursor_charge);
      require(on_bad == BadSpectrum::try_charges || spectrum.charges.size() == 1);
      if (preparation.prepare(spectrum, prepared)) continue;
      require(prepared.precursor_mass > 0 && !prepared.peaks.empty());
      require(std::is_sorted(prepared.peaks.begin(), prepared.peaks.end()));
      for (const uint64_t peak : prepared.peaks)
        require(peak_intensity(peak) > 0 && peak_intensity(peak) <= 1);
    }
    require(bad == reader.value()->counts().bad);
  }
}

}  // namespace fullbore::testing
