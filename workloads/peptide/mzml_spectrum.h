#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/peptide/binary_array.h"
#include "workloads/peptide/spectrum.h"

namespace fullbore::peptide {

/// One cvParam of mzML: a term of the PSI-MS vocabulary and its value.
struct MzmlTerm {
  std::string accession;
  std::string name;
  std::string value;
  std::string unit;  ///< accession
};

/// One spectrum of mzML while its elements come in. Where a function returns a text, that is one clause
/// that says what is wrong.
class MzmlSpectrum {
 public:
  using Problem = std::optional<std::string>;

  /// length: defaultArrayLength, -1 if it is not said.
  void begin(std::string_view id, uint64_t index, int64_t length, uint64_t line);
  void begin_ion() { ++ions_; }
  void begin_array(int64_t length);
  Problem add_text(std::string_view piece);  ///< base64 of the array
  Problem end_array();
  /// Is this of level 2? Then spectrum() is complete, or there is a problem.
  bool is_wanted() const { return level_ == 2; }
  Problem end();
  Spectrum& spectrum() { return spectrum_; }

  Problem describe_spectrum(const MzmlTerm& term);
  Problem describe_scan(const MzmlTerm& term);
  Problem describe_isolation(const MzmlTerm& term);
  Problem describe_ion(const MzmlTerm& term);
  void describe_array(const MzmlTerm& term);

 private:
  enum class Kind : uint8_t { other, mz, intensity };

  Spectrum spectrum_;
  int level_ = 0;
  int ions_ = 0;
  int64_t length_ = -1;
  double isolation_mz_ = Spectrum::kUnknown;
  std::optional<std::vector<double>> mz_;
  std::optional<std::vector<double>> intensity_;

  Kind kind_ = Kind::other;
  BinaryEncoding encoding_;
  std::string unsupported_;  // a type or compression that is not read
  int64_t array_length_ = -1;
  std::string text_;
  std::string scratch_;
  std::vector<double> values_;
};

}  // namespace fullbore::peptide
