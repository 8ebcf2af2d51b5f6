#pragma once
#include <memory>

#include "fullbore/data/input_bytes.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

/// Spectra of MS level 2 of an mzML document, indexed or not; the others are counted and passed over. What is wrong
/// within a spectrum makes it a bad one; XML that is not well formed ends the file. Arrays of 32 or
/// 64 bits (binary_array.h) or MS-Numpress (numpress.h), plain or in zlib or zstd. Source: mzML 1.1.0
/// (Martens et al. 2011, Mol. Cell. Proteomics 10) and the PSI-MS vocabulary.
std::unique_ptr<SpectrumReader> make_mzml_reader(InputBytes bytes,
                                                 const SpectrumReadOptions& options);

}  // namespace fullbore::peptide
