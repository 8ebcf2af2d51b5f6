#include "models/peptide/spectrum_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fullbore/base/text.h"
#include "models/peptide/peak_lines.h"
#include "models/peptide/table_rows.h"

namespace fullbore::peptide {
namespace {

enum Column : size_t {
  kSequence,
  kModifiedSequence,
  kPrecursorMz,
  kPrecursorCharge,
  kMzArray,
  kIntensityArray,
  kScan,
  kTitle,
  kRetention,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kNames = {
    "sequence",         "modified_sequence", "precursor_mz", "precursor_charge",
    "mz_array",         "intensity_array",   "scan",         "title",
    "retention_seconds"};

class TableReader : public SpectrumReader {
 public:
  TableReader(TextLines lines, const SpectrumReadOptions& options)
      : rows_(std::move(lines), ','), options_(options) {
    places_.fill(-1);
  }
  Status read_header();
  Result<bool> next(Spectrum& spectrum) override;

 private:
  /// The next line that is not empty as a row; false at the end.
  Result<bool> read_row();
  Status read_spectrum(Spectrum& spectrum);
  Status read_charge(Spectrum& spectrum);
  Status read_array(Column column, std::vector<double>& values);
  std::string_view cell(Column column) const {
    return places_[column] < 0 ? std::string_view()
                               : trimmed(rows_.cells()[static_cast<size_t>(places_[column])]);
  }
  Failure failure(Column column, std::string_view message) const {
    return rows_.failure(fmt::format("{} {}", kNames[column], message));
  }

  TableRows rows_;
  SpectrumReadOptions options_;
  size_t width_ = 0;
  std::array<int, kColumns> places_{};
  std::vector<double> mz_;
  std::vector<double> intensity_;
};

Result<bool> TableReader::read_row() {
  for (;;) {
    Result<bool> more = rows_.lines().next();
    if (!more.ok() || !more.value()) return more;
    if (trimmed(rows_.lines().line()).empty()) continue;
    const Status status = rows_.split();
    if (!status.ok()) return Failure{status.error()};
    return true;
  }
}

Status TableReader::read_header() {
  const Result<bool> more = rows_.lines().next();
  if (!more.ok()) return Failure{more.error()};
  if (!more.value())
    return rows_.lines().failure(1, "the table is empty, expected names of columns");
  for (const char separator : {';', ',', '\t'})
    if (rows_.lines().line().find(separator) != std::string_view::npos)
      rows_.set_separator(separator);
  Status status = rows_.split();
  if (!status.ok()) return status;
  width_ = rows_.cells().size();
  std::vector<std::string> names;
  for (size_t i = 0; i < width_; ++i) {
    const std::string_view name = trimmed(rows_.cells()[i]);
    names.emplace_back(name);
    for (size_t column = 0; column < kColumns; ++column) {
      const bool is_alias = column == kPrecursorCharge && same_ignoring_case(name, "charge");
      if (!is_alias && !same_ignoring_case(name, kNames[column])) continue;
      if (places_[column] >= 0)
        return rows_.failure(fmt::format("two columns are {}", kNames[column]));
      places_[column] = static_cast<int>(i);
    }
  }
  for (const Column column : {kPrecursorMz, kPrecursorCharge, kMzArray, kIntensityArray}) {
    if (places_[column] >= 0 || (column == kPrecursorCharge && options_.default_charge > 0))
      continue;
    const std::string nearest = nearest_name(kNames[column], names);
    return rows_.failure(fmt::format(
        "no column is {}{}", kNames[column],
        nearest.empty() ? "" : fmt::format("; the nearest is {}", quote_text(nearest))));
  }
  return success();
}

Result<bool> TableReader::next(Spectrum& spectrum) {
  Result<bool> more = read_row();
  if (!more.ok() || !more.value()) return more;
  if (rows_.cells().size() != width_)
    return rows_.failure(fmt::format("the row has {} cells, and {} columns are named",
                                     rows_.cells().size(), width_));
  spectrum.clear();
  spectrum.line = rows_.line();
  const Status status = read_spectrum(spectrum);
  if (!status.ok()) return Failure{status.error()};
  return true;
}

Status TableReader::read_spectrum(Spectrum& spectrum) {
  spectrum.sequence = cell(cell(kModifiedSequence).empty() ? kSequence : kModifiedSequence);
  spectrum.scan = cell(kScan);
  spectrum.title = cell(kTitle);
  const std::optional<double> precursor = parse_number(cell(kPrecursorMz));
  if (!precursor || !(*precursor > 0))
    return failure(kPrecursorMz, fmt::format("is {}, expected a number of more than 0",
                                             quote_text(cell(kPrecursorMz))));
  spectrum.precursor_mz = *precursor;
  if (const std::string_view retention = cell(kRetention); !retention.empty()) {
    const std::optional<double> seconds = parse_number(retention);
    if (!seconds)
      return failure(kRetention, fmt::format("is {}, expected seconds", quote_text(retention)));
    spectrum.retention_seconds = *seconds;
  }
  Status status = read_charge(spectrum);
  if (status.ok()) status = read_array(kMzArray, mz_);
  if (status.ok()) status = read_array(kIntensityArray, intensity_);
  if (!status.ok()) return status;
  if (mz_.size() != intensity_.size())
    return failure(kIntensityArray,
                   fmt::format("has {} numbers, and mz_array {}", intensity_.size(), mz_.size()));
  for (size_t i = 0; i < mz_.size(); ++i)
    if (const auto problem = add_peak(mz_[i], intensity_[i], spectrum))
      return rows_.failure(fmt::format("peak {}: {}", i + 1, *problem));
  return success();
}

Status TableReader::read_charge(Spectrum& spectrum) {
  const std::string_view text = cell(kPrecursorCharge);
  if (text.empty() || text == "0") {
    if (options_.default_charge == 0)
      return failure(kPrecursorCharge, "is missing, and no default is given");
    spectrum.precursor_charge = options_.default_charge;
    return success();
  }
  const std::optional<int> charge = parse_charge(text);
  if (!charge)
    return failure(kPrecursorCharge,
                   fmt::format("is {}, expected a positive charge", quote_text(text)));
  spectrum.precursor_charge = *charge;
  return success();
}

Status TableReader::read_array(Column column, std::vector<double>& values) {
  constexpr std::string_view kBetween = "[](){},; \t\n\r";
  std::string_view text = cell(column);
  values.clear();
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return success();
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    const std::optional<double> value = parse_number(word);
    if (!value) return failure(column, fmt::format("has {}, expected numbers", quote_text(word)));
    if (values.size() == kMostPeaksOfSpectrum)
      return failure(column, fmt::format("has more than {} numbers", kMostPeaksOfSpectrum));
    values.push_back(*value);
  }
}

}  // namespace

Result<std::unique_ptr<SpectrumReader>> make_table_reader(TextLines lines,
                                                          const SpectrumReadOptions& options) {
  auto reader = std::make_unique<TableReader>(std::move(lines), options);
  const Status status = reader->read_header();
  if (!status.ok()) return Failure{status.error()};
  return std::unique_ptr<SpectrumReader>(std::move(reader));
}

}  // namespace fullbore::peptide
