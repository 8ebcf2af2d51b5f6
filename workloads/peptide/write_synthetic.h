#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "fullbore/base/result.h"
#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/residues.h"
#include "workloads/peptide/synthetic_options.h"

namespace fullbore::peptide {

/// Which of a run's synthetic spectra.
struct SyntheticRange {
  uint64_t first = 0;  ///< spectrum i of a run is row i % B of the batch of step i / B
  uint64_t count = 0;
};

/// Calls `take` with the spectra of the range as training draws them at their steps, bit for bit: peaks, precursor
/// (float, as the model is told it) and peptide. Ends at the first failure of `take`, which is its own. UsageError:
/// options, curriculum, or a first spectrum that begins no batch.
Status draw_synthetic(const SyntheticOptions& options, const Curriculum& curriculum,
                      const SyntheticRange& range,
                      const std::function<Status(uint64_t index, const PreparedSpectrum&)>& take);

/// The same as an MGF file, annotated with SEQ=, which appears when it is whole. Masses are written with as many digits
/// as read back to the same bits; the precursor is the m/z of its neutral mass.
Status write_synthetic_mgf(const std::string& path, const SyntheticOptions& options,
                           const Curriculum& curriculum, const SyntheticRange& range);
/// The same as a cache of spectra (spectrum_cache.h) of that alphabet.
Status write_synthetic_cache(const std::string& path, const ResidueAlphabet& alphabet,
                             const SyntheticOptions& options, const Curriculum& curriculum,
                             const SyntheticRange& range);

}  // namespace fullbore::peptide
