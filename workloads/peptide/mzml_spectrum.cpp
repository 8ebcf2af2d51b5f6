#include "workloads/peptide/mzml_spectrum.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/charges.h"
#include "workloads/peptide/peak_lines.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {
namespace {

constexpr size_t kMostText = size_t{1} << 25;  // base64 of one array

/// What a term says of an array's encoding; what it leaves out stays as it is.
struct EncodingTerm {
  std::string_view accession;
  std::optional<BinaryEncoding::Numbers> numbers;
  std::optional<BinaryEncoding::Compression> compression;
};
using Numbers = BinaryEncoding::Numbers;
using Compression = BinaryEncoding::Compression;
constexpr EncodingTerm kEncodingTerms[] = {
    {"MS:1000574", {}, Compression::zlib},
    {"MS:1003088", {}, Compression::zlib},  // of numbers whose last bits were cut
    {"MS:1003780", {}, Compression::zstd},
    {"MS:1003781", Numbers::shuffled, Compression::zstd},
    {"MS:1003782", Numbers::dictionary, Compression::zstd},
    {"MS:1002312", Numbers::numpress_linear, {}},
    {"MS:1002313", Numbers::numpress_integers, {}},
    {"MS:1002314", Numbers::numpress_logarithms, {}},
    {"MS:1002746", Numbers::numpress_linear, Compression::zlib},
    {"MS:1002747", Numbers::numpress_integers, Compression::zlib},
    {"MS:1002748", Numbers::numpress_logarithms, Compression::zlib},
    {"MS:1003783", Numbers::numpress_linear, Compression::zstd},
    {"MS:1003784", Numbers::numpress_integers, Compression::zstd},
    {"MS:1003785", Numbers::numpress_logarithms, Compression::zstd},
};

MzmlSpectrum::Problem read_number(const MzmlTerm& term, double& number) {
  const std::optional<double> value = parse_number(trimmed(term.value));
  if (!value) return fmt::format("{} is {}, expected a number", term.name, quote_text(term.value));
  number = *value;
  return {};
}

}  // namespace

void MzmlSpectrum::begin(std::string_view id, uint64_t index, int64_t length, uint64_t line) {
  spectrum_ = Spectrum();
  spectrum_.line = line;
  spectrum_.title = id;
  spectrum_.scan = id;
  spectrum_.native_id = id;
  spectrum_.index = index;
  constexpr std::string_view kScan = "scan=";
  if (const size_t scan = id.rfind(kScan); scan != std::string_view::npos) {
    const std::string_view number = id.substr(scan + kScan.size());
    spectrum_.scan = number.substr(0, number.find(' '));
  }
  level_ = 0;
  ions_ = 0;
  length_ = length;
  isolation_mz_ = Spectrum::kUnknown;
  mz_.reset();
  intensity_.reset();
}

MzmlSpectrum::Problem MzmlSpectrum::describe_spectrum(const MzmlTerm& term) {
  if (term.accession == "MS:1000128") spectrum_.is_profile = true;  // profile spectrum
  if (term.accession != "MS:1000511") return {};                    // ms level
  double level = 0;
  if (auto problem = read_number(term, level)) {
    level_ = 2;  // it may be, and is told of
    return problem;
  }
  level_ = level == 2 ? 2 : 1;
  return {};
}

MzmlSpectrum::Problem MzmlSpectrum::describe_scan(const MzmlTerm& term) {
  if (term.accession != "MS:1000016") return {};  // scan start time
  constexpr std::string_view kMinute = "UO:0000031";
  double time = 0;
  if (auto problem = read_number(term, time)) return problem;
  spectrum_.retention_seconds = term.unit == kMinute ? 60 * time : time;
  return {};
}

MzmlSpectrum::Problem MzmlSpectrum::describe_isolation(const MzmlTerm& term) {
  // isolation window target m/z
  if (term.accession != "MS:1000827" || !std::isnan(isolation_mz_)) return {};
  return read_number(term, isolation_mz_);
}

MzmlSpectrum::Problem MzmlSpectrum::describe_ion(const MzmlTerm& term) {
  // Of several ions that were broken together the first counts.
  if (!is_wanted() || ions_ != 1) return {};
  if (term.accession == "MS:1000744") return read_number(term, spectrum_.precursor_mz);
  if (term.accession == "MS:1000042") return read_number(term, spectrum_.precursor_intensity);
  // charge state, possible charge state
  if (term.accession != "MS:1000041" && term.accession != "MS:1000633") return {};
  const std::optional<std::vector<int>> charges = parse_charges(term.value);
  if (!charges)
    return fmt::format("charge state is {}, expected a positive charge", quote_text(term.value));
  if (spectrum_.charges.size() + charges->size() > kMostCharge) return "it has too many charges";
  spectrum_.charges.insert(spectrum_.charges.end(), charges->begin(), charges->end());
  return {};
}

void MzmlSpectrum::describe_array(const MzmlTerm& term) {
  const std::string& id = term.accession;
  if (id == "MS:1000514") kind_ = Kind::mz;
  if (id == "MS:1000515") kind_ = Kind::intensity;
  if (id == "MS:1000521") encoding_.bits = 32;
  if (id == "MS:1000523") encoding_.bits = 64;
  for (const EncodingTerm& meaning : kEncodingTerms) {
    if (id != meaning.accession) continue;
    // Some writers name zlib and what is in it by two terms.
    if (meaning.numbers) encoding_.numbers = *meaning.numbers;
    if (meaning.compression) encoding_.compression = *meaning.compression;
  }
  // Integers and half precision; predictions from numbers whose last bits were cut; a grid kept elsewhere.
  for (const std::string_view unsupported :
       {"MS:1000519", "MS:1000520", "MS:1000522", "MS:1003089", "MS:1003090", "MS:1003826"})
    if (id == unsupported) unsupported_ = term.name.empty() ? id : term.name;
}

void MzmlSpectrum::begin_array(int64_t length) {
  kind_ = Kind::other;
  encoding_ = BinaryEncoding();
  unsupported_.clear();
  array_length_ = length;
  text_.clear();
}

MzmlSpectrum::Problem MzmlSpectrum::add_text(std::string_view piece) {
  if (!is_wanted()) return {};
  if (text_.size() + piece.size() > kMostText)
    return fmt::format("an array has more than {} bytes of text", kMostText);
  text_ += piece;
  return {};
}

MzmlSpectrum::Problem MzmlSpectrum::end_array() {
  if (!is_wanted() || kind_ == Kind::other) return {};
  const std::string_view name = kind_ == Kind::mz ? "m/z array" : "intensity array";
  if (!unsupported_.empty())
    return fmt::format(
        "the {} is {}, expected floats of 32 or 64 bits or MS-Numpress, plain or in zlib or zstd",
        name, quote_text(unsupported_));
  if (encoding_.bits == 0 && !encoding_.is_numpress())
    return fmt::format("the {} does not say its precision", name);
  if (auto problem = decode_binary_array(text_, encoding_, kMostPeaksOfSpectrum, scratch_, values_))
    return fmt::format("the {}: {}", name, *problem);
  const int64_t length = array_length_ >= 0 ? array_length_ : length_;
  if (length >= 0 && static_cast<size_t>(length) != values_.size())
    return fmt::format("the {} has {} numbers, expected {}", name, values_.size(), length);
  auto& values = kind_ == Kind::mz ? mz_ : intensity_;
  if (values) return fmt::format("a second {}", name);
  values = values_;
  return {};
}

MzmlSpectrum::Problem MzmlSpectrum::end() {
  if (!is_wanted()) return {};
  if (length_ == 0 && !mz_ && !intensity_) mz_ = intensity_ = std::vector<double>();
  if (!mz_) return "it has no m/z array";
  if (!intensity_) return "it has no intensity array";
  if (mz_->size() != intensity_->size())
    return fmt::format("{} m/z and {} intensities", mz_->size(), intensity_->size());
  for (size_t i = 0; i < mz_->size(); ++i)
    if (const auto problem = add_peak((*mz_)[i], (*intensity_)[i], spectrum_))
      return fmt::format("peak {}: {}", i + 1, *problem);
  if (std::isnan(spectrum_.precursor_mz)) spectrum_.precursor_mz = isolation_mz_;
  if (!(spectrum_.precursor_mz > 0)) return "it has no selected ion m/z";
  return {};
}

}  // namespace fullbore::peptide
