#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/base/result.h"
#include "workloads/peptide/spectrum.h"

namespace fullbore::peptide {

enum class SpectrumFormat : uint8_t { mgf, msp, mzml, table };
std::string_view spectrum_format_name(SpectrumFormat format);

/// What becomes of a spectrum that is malformed, has no charge or several, or is a profile.
enum class BadSpectrum : uint8_t {
  fail,        ///< it ends the file
  skip,        ///< it is left out; profiles are centroided
  try_charges  ///< as skip, but where the charge is not known, each that it may be is tried
};
std::optional<BadSpectrum> parse_bad_spectrum(std::string_view name);  ///< "try-charges"
inline constexpr const char* kBadSpectrumNames[] = {"fail", "skip", "try-charges"};

/// Charges that are tried where a file states none.
inline constexpr int kTriedCharges[] = {2, 3, 4};

struct SpectrumReadOptions {
  /// Of spectra that have none, or several that are not tried; 0: those are bad.
  int default_charge = 0;
  std::optional<SpectrumFormat> format = {};  ///< none: as contents and name say
  BadSpectrum on_bad = BadSpectrum::fail;
  /// Is called for each that is left out: its `problem` says why.
  std::function<void(const Spectrum&)> left_out = {};
};

/// What a reader has met so far.
struct SpectrumReadCounts {
  uint64_t spectra = 0;    ///< of MS level 2, bad ones included
  uint64_t others = 0;     ///< of other MS levels, passed over
  uint64_t bad = 0;        ///< left out
  uint64_t profiles = 0;   ///< centroided
  uint64_t ambiguous = 0;  ///< with several charges to try
};

/// A term of the PSI-MS vocabulary, as mzTab writes parameters: "[MS, MS:1000584, mzML format, ]".
struct SpectrumFileTerms {
  std::string format;     ///< "": the vocabulary has none
  std::string id_format;  ///< how the file names its spectra
};

/// Spectra of a file one after the other. Memory stays at one spectrum and a piece of the file, whatever
/// the file's size.
class SpectrumReader {
 public:
  SpectrumReader(std::string path, SpectrumReadOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  virtual ~SpectrumReader() = default;

  /// Fills the spectrum, as options.on_bad says; false at the end. Failure: "file:line: " and what is wrong
  /// with which field. After a Failure there is nothing more to read.
  Result<bool> next(Spectrum& spectrum);
  const SpectrumReadCounts& counts() const { return counts_; }
  const std::string& path() const { return path_; }
  /// Complete once a spectrum has been read.
  virtual SpectrumFileTerms terms() const = 0;

 protected:
  /// The next spectrum, well formed or with a `problem`, of which later ones are independent; its charges are
  /// those that the file states. Failure: the file cannot be read on.
  virtual Result<bool> read(Spectrum& spectrum) = 0;
  const SpectrumReadOptions& options() const { return options_; }
  SpectrumReadCounts counts_;

 private:
  void settle(Spectrum& spectrum) const;

  std::string path_;
  SpectrumReadOptions options_;
};

/// Opens MGF, MSP, mzML (indexed or not) and tables (comma, semicolon or tab between columns sequence,
/// modified_sequence, precursor_mz, precursor_charge, mz_array, intensity_array), gzipped or not.
Result<std::unique_ptr<SpectrumReader>> open_spectra(const std::string& path,
                                                     const SpectrumReadOptions& options = {});

/// What names a spectrum in mzTab, behind "ms_run[1]:": its native id, or "index=3".
std::string spectrum_reference(const Spectrum& spectrum);

/// Limits of what a file may claim, so that no file exhausts memory.
inline constexpr size_t kMostPeaksOfSpectrum = 1000000;
inline constexpr int kMostCharge = 100;

}  // namespace fullbore::peptide
