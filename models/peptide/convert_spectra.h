#pragma once
#include <functional>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "models/peptide/prepare_spectrum.h"
#include "models/peptide/spectrum_reader.h"

namespace fullbore::peptide {

struct ConvertOptions {
  SpectrumReadOptions reading;
  PreparationOptions preparation;  ///< needs_sequence is taken for granted
  /// Called now and then with the spectra read so far; may throw.
  std::function<void(uint64_t spectra)> progress = {};
};

/// Writes the spectra of all files to one cache (spectrum_cache.h), atomically; what was read, kept and
/// dropped. Failure: a file, the first malformed spectrum, or none of them is of use; there is no cache
/// then.
Result<PreparationCounts> convert_spectra(const std::vector<std::string>& paths,
                                          const std::string& cache, const ResidueAlphabet& alphabet,
                                          const ConvertOptions& options = {});

}  // namespace fullbore::peptide
