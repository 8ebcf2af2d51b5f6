#include "workloads/peptide/spectrum_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "fullbore/base/text.h"
#include "workloads/peptide/charges.h"
#include "workloads/peptide/peak_lines.h"
#include "workloads/peptide/table_rows.h"

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
      : SpectrumReader(lines.path(), options), rows_(std::move(lines), ',') {
    places_.fill(-1);
  }
  Status read_header();
  SpectrumFileTerms terms() const override {
    return {"", "[MS, MS:1000774, multiple peak list nativeID format, ]"};
  }

 protected:
  Result<bool> read(Spectrum& spectrum) override;

 private:
  /// The next line that is not empty as a row; false at the end.
  Result<bool> read_row();
  /// What is wrong with the row; nothing: it is a spectrum.
  using Problem = std::optional<std::string>;
  Problem read_spectrum(Spectrum& spectrum);
  Problem read_array(Column column, std::vector<double>& values);
  std::string_view cell(Column column) const {
    return places_[column] < 0 ? std::string_view()
                               : trimmed(rows_.cells()[static_cast<size_t>(places_[column])]);
  }
  static std::string problem(Column column, std::string_view what) {
    return fmt::format("{} {}", kNames[column], what);
  }

  TableRows rows_;
  uint64_t spectra_ = 0;
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
  const bool needs_charge =
      options().default_charge == 0 && options().on_bad != BadSpectrum::try_charges;
  for (const Column column : {kPrecursorMz, kPrecursorCharge, kMzArray, kIntensityArray}) {
    if (places_[column] >= 0 || (column == kPrecursorCharge && !needs_charge)) continue;
    const std::string nearest = nearest_name(kNames[column], names);
    return rows_.failure(fmt::format(
        "no column is {}{}", kNames[column],
        nearest.empty() ? "" : fmt::format("; the nearest is {}", quote_text(nearest))));
  }
  return success();
}

Result<bool> TableReader::read(Spectrum& spectrum) {
  Result<bool> more = read_row();
  if (!more.ok() || !more.value()) return more;
  spectrum.clear();
  spectrum.line = rows_.line();
  spectrum.index = spectra_++;
  const Problem problem = rows_.cells().size() == width_
                              ? read_spectrum(spectrum)
                              : fmt::format("the row has {} cells, and {} columns are named",
                                            rows_.cells().size(), width_);
  if (problem) spectrum.add_problem(rows_.line(), *problem);
  return true;
}

TableReader::Problem TableReader::read_spectrum(Spectrum& spectrum) {
  spectrum.sequence = cell(cell(kModifiedSequence).empty() ? kSequence : kModifiedSequence);
  spectrum.scan = cell(kScan);
  spectrum.title = cell(kTitle);
  const std::optional<double> precursor = parse_number(cell(kPrecursorMz));
  if (!precursor || !(*precursor > 0))
    return problem(kPrecursorMz, fmt::format("is {}, expected a number of more than 0",
                                             quote_text(cell(kPrecursorMz))));
  spectrum.precursor_mz = *precursor;
  if (const std::string_view retention = cell(kRetention); !retention.empty()) {
    const std::optional<double> seconds = parse_number(retention);
    if (!seconds)
      return problem(kRetention, fmt::format("is {}, expected seconds", quote_text(retention)));
    spectrum.retention_seconds = *seconds;
  }
  const std::string_view charge = cell(kPrecursorCharge);
  std::optional<std::vector<int>> charges = parse_charges(charge);
  if (!charges)
    return problem(kPrecursorCharge,
                   fmt::format("is {}, expected a positive charge", quote_text(charge)));
  spectrum.charges = std::move(*charges);
  if (auto wrong = read_array(kMzArray, mz_)) return wrong;
  if (auto wrong = read_array(kIntensityArray, intensity_)) return wrong;
  if (mz_.size() != intensity_.size())
    return problem(kIntensityArray,
                   fmt::format("has {} numbers, and mz_array {}", intensity_.size(), mz_.size()));
  for (size_t i = 0; i < mz_.size(); ++i)
    if (const auto wrong = add_peak(mz_[i], intensity_[i], spectrum))
      return fmt::format("peak {}: {}", i + 1, *wrong);
  return {};
}

TableReader::Problem TableReader::read_array(Column column, std::vector<double>& values) {
  constexpr std::string_view kBetween = "[](){},; \t\n\r";
  std::string_view text = cell(column);
  values.clear();
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return {};
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    text.remove_prefix(word.size());
    const std::optional<double> value = parse_number(word);
    if (!value) return problem(column, fmt::format("has {}, expected numbers", quote_text(word)));
    if (values.size() == kMostPeaksOfSpectrum)
      return problem(column, fmt::format("has more than {} numbers", kMostPeaksOfSpectrum));
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
