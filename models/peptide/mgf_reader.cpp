#include "models/peptide/mgf_reader.h"

#include <fmt/format.h>

#include <cmath>

#include "models/peptide/peak_lines.h"

namespace fullbore::peptide {
namespace {

bool is_comment(std::string_view line) {
  return line.empty() || line[0] == '#' || line[0] == ';' || line[0] == '!' || line[0] == '/';
}

// "824.574", or the first of "824.5-830.1".
std::optional<double> first_of_range(std::string_view text) {
  const size_t dash = text.find('-', 1);
  if (dash != std::string_view::npos && text[dash - 1] != 'e' && text[dash - 1] != 'E')
    text = text.substr(0, dash);
  return parse_number(trimmed(text));
}

}  // namespace

MgfReader::MgfReader(TextLines lines, const SpectrumReadOptions& options)
    : lines_(std::move(lines)), options_(options) {}

Result<bool> MgfReader::next(Spectrum& spectrum) {
  Result<bool> found = find_block();
  if (!found.ok() || !found.value()) return found;
  spectrum.clear();
  spectrum.line = lines_.number();
  charge_.clear();
  Status status = read_block(spectrum);
  if (status.ok()) status = check(spectrum);
  if (!status.ok()) return Failure{status.error()};
  return true;
}

Result<bool> MgfReader::find_block() {
  for (;;) {
    Result<bool> more = lines_.next();
    if (!more.ok() || !more.value()) return more;
    const std::string_view line = trimmed(lines_.line());
    if (is_comment(line)) continue;
    if (same_ignoring_case(line, "BEGIN IONS")) return true;
    if (same_ignoring_case(line, "END IONS"))
      return lines_.failure("END IONS without the BEGIN IONS that it ends");
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos)
      return lines_.failure(
          fmt::format("{} stands between spectra, expected BEGIN IONS", quote_text(line)));
    if (same_ignoring_case(trimmed(line.substr(0, equals)), "CHARGE")) {
      common_charge_ = trimmed(line.substr(equals + 1));
      charge_line_ = lines_.number();
    }
  }
}

Status MgfReader::read_block(Spectrum& spectrum) {
  for (;;) {
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value())
      return lines_.failure(spectrum.line, "the file ends before the END IONS of this BEGIN IONS");
    const std::string_view line = trimmed(lines_.line());
    if (is_comment(line)) continue;
    if ((line[0] >= '0' && line[0] <= '9') || line[0] == '.') {
      if (const auto problem = add_peak_line(line, spectrum)) return lines_.failure(*problem);
      continue;
    }
    if (same_ignoring_case(line, "END IONS")) return success();
    if (same_ignoring_case(line, "BEGIN IONS"))
      return lines_.failure(fmt::format(
          "BEGIN IONS within a spectrum: the one of line {} has no END IONS", spectrum.line));
    Status status = read_field(line, spectrum);
    if (!status.ok()) return status;
  }
}

Status MgfReader::read_field(std::string_view line, Spectrum& spectrum) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos)
    return lines_.failure(
        fmt::format("{} is neither KEY=VALUE nor a peak 'mz intensity'", quote_text(line)));
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1));
  const auto is = [&](std::string_view name) { return same_ignoring_case(key, name); };
  if (is("PEPMASS")) return read_precursor(value, spectrum);
  if (is("CHARGE")) {
    if (!charge_.empty()) return lines_.failure("CHARGE is there twice");
    charge_ = value;
    charge_line_ = lines_.number();
  } else if (is("TITLE")) {
    spectrum.title = value;
  } else if (is("SCANS")) {
    spectrum.scan = value;
  } else if (is("SEQ")) {
    if (!spectrum.sequence.empty()) return lines_.failure("SEQ is there twice");
    spectrum.sequence = value;
  } else if (is("RTINSECONDS") && !value.empty()) {
    const std::optional<double> seconds = first_of_range(value);
    if (!seconds)
      return lines_.failure(fmt::format("RTINSECONDS is {}, expected seconds", quote_text(value)));
    spectrum.retention_seconds = *seconds;
  }
  return success();
}

Status MgfReader::read_precursor(std::string_view value, Spectrum& spectrum) {
  if (!std::isnan(spectrum.precursor_mz)) return lines_.failure("PEPMASS is there twice");
  std::string_view rest = value;
  const std::optional<double> mz = parse_number(take_word(rest));
  if (!mz || !(*mz > 0))
    return lines_.failure(
        fmt::format("PEPMASS is {}, expected an m/z of more than 0", quote_text(value)));
  spectrum.precursor_mz = *mz;
  const std::string_view intensity_text = take_word(rest);
  if (!intensity_text.empty()) {
    const std::optional<double> intensity = parse_number(intensity_text);
    if (!intensity || *intensity < 0)
      return lines_.failure(
          fmt::format("PEPMASS is {}, expected 'mz intensity'", quote_text(value)));
    spectrum.precursor_intensity = *intensity;
  }
  const std::string_view charge = take_word(rest);
  if (!charge.empty() && charge_.empty()) {
    charge_ = charge;
    charge_line_ = lines_.number();
  }
  return success();
}

Status MgfReader::check(Spectrum& spectrum) {
  if (std::isnan(spectrum.precursor_mz))
    return lines_.failure(spectrum.line, "the spectrum has no PEPMASS");
  const std::string& written = charge_.empty() ? common_charge_ : charge_;
  // "0" is how some converters say that they do not know.
  const bool is_missing = written.empty() || written == "0" || written == "0+";
  const bool is_several =
      written.find("and") != std::string::npos || written.find(',') != std::string::npos;
  if (is_missing || is_several) {
    spectrum.precursor_charge = options_.default_charge;
    if (options_.default_charge > 0) return success();
    if (is_missing)
      return lines_.failure(spectrum.line, "the spectrum has no CHARGE, and no default is given");
    return lines_.failure(
        charge_line_,
        fmt::format("CHARGE is {}, several, and no default is given", quote_text(written)));
  }
  const std::optional<int> charge = parse_charge(written);
  if (!charge)
    return lines_.failure(
        charge_line_,
        fmt::format("CHARGE is {}, expected a positive charge such as 2+", quote_text(written)));
  spectrum.precursor_charge = *charge;
  return success();
}

}  // namespace fullbore::peptide
