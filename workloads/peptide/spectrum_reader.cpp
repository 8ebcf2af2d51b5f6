#include "workloads/peptide/spectrum_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/centroid.h"
#include "workloads/peptide/mgf_reader.h"
#include "workloads/peptide/msp_reader.h"
#include "workloads/peptide/mzml_reader.h"
#include "workloads/peptide/spectrum_table.h"

namespace fullbore::peptide {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The first line that says something; false where the file has none.
std::optional<SpectrumFormat> format_of_contents(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  if (head.starts_with("\xFF\xFE") || head.starts_with("\xFE\xFF")) return {};  // UTF-16
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = trimmed(line);
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '<') return SpectrumFormat::mzml;
    if (same_ignoring_case(line, "BEGIN IONS")) return SpectrumFormat::mgf;
    if (same_ignoring_case(line.substr(0, 5), "Name:")) return SpectrumFormat::msp;
    if (lower(std::string(line)).find("mz_array") != std::string::npos)
      return SpectrumFormat::table;
    // Settings for the whole file, ahead of the first block.
    if (line.find('=') != std::string_view::npos) return SpectrumFormat::mgf;
    return {};
  }
  return {};
}

std::optional<SpectrumFormat> format_of_name(const std::string& path) {
  std::filesystem::path name(lower(path));
  if (name.extension() == ".gz") name = name.stem();
  const std::string extension = name.extension().string();
  if (extension == ".mgf") return SpectrumFormat::mgf;
  if (extension == ".msp") return SpectrumFormat::msp;
  if (extension == ".mzml" || extension == ".xml") return SpectrumFormat::mzml;
  if (extension == ".csv" || extension == ".tsv") return SpectrumFormat::table;
  return {};
}

Result<std::optional<SpectrumFormat>> detect(const std::string& path) {
  Result<InputBytes> bytes = InputBytes::open(path);
  if (!bytes.ok()) return Failure{bytes.error()};
  std::string head(size_t{1} << 16, '\0');
  const Result<size_t> count = bytes.value().read(head.data(), head.size());
  if (!count.ok()) return Failure{count.error()};
  if (count.value() == 0) return Failure{fmt::format("{}: the file is empty", path)};
  std::optional<SpectrumFormat> format =
      format_of_contents(std::string_view(head).substr(0, count.value()));
  if (!format) format = format_of_name(path);
  return format;
}

}  // namespace

std::string_view spectrum_format_name(SpectrumFormat format) {
  constexpr std::string_view kNames[] = {"MGF", "MSP", "mzML", "table"};
  return kNames[static_cast<size_t>(format)];
}

std::optional<BadSpectrum> parse_bad_spectrum(std::string_view name) {
  for (size_t i = 0; i < std::size(kBadSpectrumNames); ++i)
    if (name == kBadSpectrumNames[i]) return static_cast<BadSpectrum>(i);
  return {};
}

std::string spectrum_reference(const Spectrum& spectrum) {
  return spectrum.native_id.empty() ? fmt::format("index={}", spectrum.index) : spectrum.native_id;
}

void SpectrumReader::settle(Spectrum& spectrum) const {
  std::vector<int>& charges = spectrum.charges;
  std::sort(charges.begin(), charges.end());
  charges.erase(std::unique(charges.begin(), charges.end()), charges.end());
  if (charges.size() != 1) {
    const bool tries = options_.on_bad == BadSpectrum::try_charges;
    if (options_.default_charge > 0 && (charges.empty() || !tries))
      charges = {options_.default_charge};
    else if (tries && charges.empty())
      charges.assign(std::begin(kTriedCharges), std::end(kTriedCharges));
    else if (!tries)
      spectrum.add_problem(spectrum.line,
                           charges.empty()
                               ? "the spectrum has no charge, and no default is given"
                               : fmt::format("the spectrum has charges {}, and no default is given",
                                             fmt::join(charges, " and ")));
  }
  if (!charges.empty()) spectrum.precursor_charge = charges.front();
  if (!spectrum.is_profile || !spectrum.problem.empty()) return;
  if (options_.on_bad == BadSpectrum::fail)
    spectrum.add_problem(spectrum.line, "the spectrum is a profile, expected centroids");
  else
    centroid(spectrum.mz, spectrum.intensity);
}

Result<bool> SpectrumReader::next(Spectrum& spectrum) {
  for (;;) {
    Result<bool> more = read(spectrum);
    if (!more.ok() || !more.value()) return more;
    if (spectrum.problem.empty()) settle(spectrum);
    ++counts_.spectra;
    if (spectrum.problem.empty()) {
      counts_.profiles += spectrum.is_profile ? 1 : 0;
      counts_.ambiguous += spectrum.charges.size() > 1 ? 1 : 0;
      return true;
    }
    if (options_.on_bad == BadSpectrum::fail)
      return Failure{fmt::format("{}:{}: {}{}", path_, spectrum.problem_line,
                                 spectrum.native_id.empty()
                                     ? ""
                                     : fmt::format("spectrum {}: ", quote_text(spectrum.native_id)),
                                 spectrum.problem)};
    ++counts_.bad;
    if (options_.left_out) options_.left_out(spectrum);
  }
}

Result<std::unique_ptr<SpectrumReader>> open_spectra(const std::string& path,
                                                     const SpectrumReadOptions& options) {
  std::optional<SpectrumFormat> format = options.format;
  if (!format) {
    const Result<std::optional<SpectrumFormat>> detected = detect(path);
    if (!detected.ok()) return Failure{detected.error()};
    format = detected.value();
  }
  if (!format)
    return Failure{fmt::format(
        "{}: neither contents nor name are those of MGF, MSP, mzML or a table with mz_array",
        path)};
  Result<InputBytes> bytes = InputBytes::open(path);
  if (!bytes.ok()) return Failure{bytes.error()};
  if (*format == SpectrumFormat::mzml) return make_mzml_reader(std::move(bytes).value(), options);
  TextLines lines(std::move(bytes).value());
  if (*format == SpectrumFormat::table) return make_table_reader(std::move(lines), options);
  if (*format == SpectrumFormat::msp)
    return std::unique_ptr<SpectrumReader>(std::make_unique<MspReader>(std::move(lines), options));
  return std::unique_ptr<SpectrumReader>(std::make_unique<MgfReader>(std::move(lines), options));
}

}  // namespace fullbore::peptide
