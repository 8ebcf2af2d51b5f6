#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

struct ConvertOptions {
  SpectrumReadOptions reading;
  PreparationOptions preparation;  ///< needs_sequence is taken for granted
  /// A list of the spectra that were left out, left_out.h; "": none.
  std::string left_out_path = {};
  /// Called now and then with the spectra read so far; may throw.
  std::function<void(uint64_t spectra)> progress = {};
};

/// Writes the spectra of all files to one cache (spectrum_cache.h), atomically; what was read, kept and
/// dropped. Of several charges that a spectrum may have, the one of its sequence's mass is taken.
/// Failure: a file, the first bad spectrum if reading.on_bad says so, or none of them is of use; there is no
/// cache then.
Result<PreparationCounts> convert_spectra(const std::vector<std::string>& paths,
                                          const std::string& cache, const ResidueAlphabet& alphabet,
                                          const ConvertOptions& options = {});

}  // namespace fullbore::peptide
