#include "models/peptide/spectrum_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "models/peptide/mgf_reader.h"
#include "models/peptide/msp_reader.h"
#include "models/peptide/mzml_reader.h"
#include "models/peptide/spectrum_table.h"
#include "models/peptide/text_lines.h"

namespace fullbore::peptide {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// The first line that says something; false where the file has none.
std::optional<SpectrumFormat> format_of_contents(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
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
