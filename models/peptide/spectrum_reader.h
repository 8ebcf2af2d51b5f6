#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"
#include "models/peptide/spectrum.h"

namespace fullbore::peptide {

/// Spectra of a file one after the other. Memory stays at one spectrum and a piece of the file, whatever
/// the file's size.
class SpectrumReader {
 public:
  virtual ~SpectrumReader() = default;
  /// Fills the spectrum; false at the end. Failure: "file:line: " and what is wrong with which field.
  /// After a Failure there is nothing more to read.
  virtual Result<bool> next(Spectrum& spectrum) = 0;
};

enum class SpectrumFormat : uint8_t { mgf, msp, mzml, table };
std::string_view spectrum_format_name(SpectrumFormat format);

struct SpectrumReadOptions {
  /// Of spectra that have none, or several; 0: those are failures.
  int default_charge = 0;
  std::optional<SpectrumFormat> format = {};  ///< none: as contents and name say
};

/// Opens MGF, MSP, mzML (indexed or not) and tables (comma, semicolon or tab between columns sequence,
/// modified_sequence, precursor_mz, precursor_charge, mz_array, intensity_array), gzipped or not.
Result<std::unique_ptr<SpectrumReader>> open_spectra(const std::string& path,
                                                     const SpectrumReadOptions& options = {});

/// Limits of what a file may claim, so that no file exhausts memory.
inline constexpr size_t kMostPeaksOfSpectrum = 1000000;
inline constexpr int kMostCharge = 100;

}  // namespace fullbore::peptide
