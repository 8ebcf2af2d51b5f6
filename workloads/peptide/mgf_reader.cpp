#include "workloads/peptide/mgf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "workloads/peptide/charges.h"
#include "workloads/peptide/peak_lines.h"

namespace fullbore::peptide {
namespace {

bool is_comment(std::string_view line) {
  return line.empty() || line[0] == '#' || line[0] == ';' || line[0] == '!' || line[0] == '/';
}

bool begins_a_number(std::string_view line) {
  return (line[0] >= '0' && line[0] <= '9') || line[0] == '.' || line[0] == '-' || line[0] == '+';
}

// "824.574", or the first of "824.5-830.1".
std::optional<double> first_of_range(std::string_view text) {
  const size_t dash = text.find('-', 1);
  if (dash != std::string_view::npos && text[dash - 1] != 'e' && text[dash - 1] != 'E')
    text = text.substr(0, dash);
  return parse_number(trimmed(text));
}

bool has_all(const std::vector<int>& of, const std::vector<int>& wanted) {
  return std::ranges::all_of(wanted,
                             [&](int charge) { return std::ranges::count(of, charge) > 0; });
}

}  // namespace

MgfReader::MgfReader(TextLines lines, const SpectrumReadOptions& options)
    : SpectrumReader(lines.path(), options), lines_(std::move(lines)) {}

SpectrumFileTerms MgfReader::terms() const {
  return {"[MS, MS:1001062, Mascot MGF format, ]",
          "[MS, MS:1000774, multiple peak list nativeID format, ]"};
}

Result<bool> MgfReader::read(Spectrum& spectrum) {
  spectrum.clear();
  Result<bool> found = find_block(spectrum);
  if (!found.ok() || !found.value() || !spectrum.problem.empty()) return found;
  spectrum.line = lines_.number();
  spectrum.index = blocks_++;
  has_charge_ = false;
  precursor_charges_.clear();
  const Status status = read_block(spectrum);
  if (!status.ok()) return Failure{status.error()};
  check(spectrum);
  return true;
}

// What stands between two blocks and belongs to none is told of once, as a bad spectrum.
Result<bool> MgfReader::find_block(Spectrum& spectrum) {
  for (;;) {
    if (is_begun_) {
      is_begun_ = is_astray_ = false;
      return true;
    }
    Result<bool> more = lines_.next();
    if (!more.ok() || !more.value()) return more;
    const std::string_view line = trimmed(lines_.line());
    if (is_comment(line)) continue;
    if (same_ignoring_case(line, "BEGIN IONS")) {
      is_astray_ = false;
      return true;
    }
    const size_t equals = line.find('=');
    const bool is_end = same_ignoring_case(line, "END IONS");
    if (!is_end && equals != std::string_view::npos) {
      if (!same_ignoring_case(trimmed(line.substr(0, equals)), "CHARGE")) continue;
      if (auto common = charges(trimmed(line.substr(equals + 1)), "CHARGE", spectrum)) {
        common_charges_ = std::move(*common);
        continue;
      }
    } else if (!is_astray_) {
      bad(spectrum,
          is_end ? "END IONS without the BEGIN IONS that it ends"
                 : fmt::format("{} stands between spectra, expected BEGIN IONS", quote_text(line)));
      is_astray_ = true;
    }
    if (spectrum.problem.empty()) continue;
    spectrum.line = lines_.number();
    spectrum.index = blocks_;
    return true;
  }
}

Status MgfReader::read_block(Spectrum& spectrum) {
  for (;;) {
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) {
      spectrum.add_problem(spectrum.line, "the file ends before the END IONS of this BEGIN IONS");
      return success();
    }
    const std::string_view line = trimmed(lines_.line());
    if (is_comment(line)) continue;
    if (begins_a_number(line)) {
      if (const auto problem = add_peak_line(line, spectrum)) bad(spectrum, *problem);
      continue;
    }
    if (same_ignoring_case(line, "END IONS")) return success();
    if (same_ignoring_case(line, "BEGIN IONS")) {
      bad(spectrum, fmt::format("BEGIN IONS within a spectrum: the one of line {} has no END IONS",
                                spectrum.line));
      is_begun_ = true;
      return success();
    }
    read_field(line, spectrum);
  }
}

void MgfReader::read_field(std::string_view line, Spectrum& spectrum) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos)
    return bad(spectrum,
               fmt::format("{} is neither KEY=VALUE nor a peak 'mz intensity'", quote_text(line)));
  const std::string_view key = trimmed(line.substr(0, equals));
  const std::string_view value = trimmed(line.substr(equals + 1));
  const auto is = [&](std::string_view name) { return same_ignoring_case(key, name); };
  if (is("PEPMASS")) {
    read_precursor(value, spectrum);
  } else if (is("CHARGE")) {
    read_charge(value, spectrum);
  } else if (is("TITLE")) {
    spectrum.title = value;
  } else if (is("SCANS")) {
    spectrum.scan = value;
  } else if (is("SEQ")) {
    if (!spectrum.sequence.empty()) return bad(spectrum, "SEQ is there twice");
    spectrum.sequence = value;
  } else if (is("RTINSECONDS") && !value.empty()) {
    const std::optional<double> seconds = first_of_range(value);
    if (!seconds)
      return bad(spectrum, fmt::format("RTINSECONDS is {}, expected seconds", quote_text(value)));
    spectrum.retention_seconds = *seconds;
  }
}

std::optional<std::vector<int>> MgfReader::charges(std::string_view value, std::string_view field,
                                                   Spectrum& spectrum) {
  std::optional<std::vector<int>> found = parse_charges(value);
  if (!found)
    bad(spectrum,
        fmt::format("{} is {}, expected a positive charge such as 2+", field, quote_text(value)));
  return found;
}

void MgfReader::read_charge(std::string_view value, Spectrum& spectrum) {
  std::optional<std::vector<int>> found = charges(value, "CHARGE", spectrum);
  if (!found || found->empty()) return;
  if (has_charge_ && *found != spectrum.charges) return bad(spectrum, "CHARGE is there twice");
  has_charge_ = true;
  spectrum.charges = std::move(*found);
}

// "mz", "mz intensity", "mz intensity charge", "mz charge+".
void MgfReader::read_precursor(std::string_view value, Spectrum& spectrum) {
  if (!std::isnan(spectrum.precursor_mz)) return bad(spectrum, "PEPMASS is there twice");
  std::string_view rest = value;
  const std::optional<double> mz = parse_number(take_word(rest));
  if (!mz || !(*mz > 0))
    return bad(spectrum,
               fmt::format("PEPMASS is {}, expected an m/z of more than 0", quote_text(value)));
  spectrum.precursor_mz = *mz;
  std::string_view behind = rest;
  const std::string_view word = take_word(behind);
  if (!word.empty() && !word.ends_with('+')) {
    const std::optional<double> intensity = parse_number(word);
    if (!intensity || *intensity < 0)
      return bad(spectrum,
                 fmt::format("PEPMASS is {}, expected 'mz intensity'", quote_text(value)));
    spectrum.precursor_intensity = *intensity;
    rest = behind;
  }
  if (auto found = charges(trimmed(rest), "the charge of PEPMASS", spectrum))
    precursor_charges_ = std::move(*found);
}

void MgfReader::check(Spectrum& spectrum) {
  if (std::isnan(spectrum.precursor_mz))
    spectrum.add_problem(spectrum.line, "the spectrum has no PEPMASS");
  std::vector<int>& charges = spectrum.charges;
  // The one that says more; where they contradict each other, either may be right.
  if (charges.empty() || (!precursor_charges_.empty() && has_all(charges, precursor_charges_)))
    charges = precursor_charges_;
  else if (!has_all(precursor_charges_, charges))
    charges.insert(charges.end(), precursor_charges_.begin(), precursor_charges_.end());
  if (charges.empty()) charges = common_charges_;
}

}  // namespace fullbore::peptide
