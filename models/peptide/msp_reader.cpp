#include "models/peptide/msp_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/peptide/peak_lines.h"

namespace fullbore::peptide {
namespace {

std::optional<int> parse_integer(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Takes what comes before the next separator off the text.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// The next of "key=value key="some words"".
std::string_view take_entry(std::string_view& text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  bool in_quotes = false;
  size_t end = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '"') in_quotes = !in_quotes;
    if (!in_quotes && (text[end] == ' ' || text[end] == '\t')) break;
  }
  const std::string_view entry = text.substr(0, end);
  text.remove_prefix(end);
  return entry;
}

}  // namespace

MspReader::MspReader(TextLines lines, const SpectrumReadOptions& options)
    : lines_(std::move(lines)), options_(options) {}

Result<bool> MspReader::next(Spectrum& spectrum) {
  Result<bool> found = find_record();
  if (!found.ok() || !found.value()) return found;
  spectrum.clear();
  spectrum.line = lines_.number();
  residues_.clear();
  modifications_.clear();
  is_plain_ = true;
  peaks_ = -1;
  may_lack_peaks_ = false;
  Status status = read_record(spectrum);
  if (status.ok()) status = check(spectrum);
  if (!status.ok()) return Failure{status.error()};
  return true;
}

Result<bool> MspReader::find_record() {
  for (;;) {
    Result<bool> more = lines_.next();
    if (!more.ok() || !more.value()) return more;
    const std::string_view line = trimmed(lines_.line());
    if (line.empty() || line[0] == '#') continue;
    if (same_ignoring_case(line.substr(0, 5), "Name:")) return true;
    return lines_.failure(
        fmt::format("{}, expected a record that begins with Name:", quote_text(line)));
  }
}

Status MspReader::read_record(Spectrum& spectrum) {
  for (;;) {
    const std::string_view line = trimmed(lines_.line());
    if (line.empty())
      return lines_.failure(
          fmt::format("the record of line {} ends without Num peaks", spectrum.line));
    Status status = read_field(line, spectrum);
    if (!status.ok()) return status;
    if (peaks_ >= 0) return read_peaks(spectrum);
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value())
      return lines_.failure(spectrum.line, "the file ends before the Num peaks of this record");
  }
}

Status MspReader::read_field(std::string_view line, Spectrum& spectrum) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos)
    return lines_.failure(fmt::format("{} is no 'Field: value'", quote_text(line)));
  const std::string_view field = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto is = [&](std::string_view name) { return same_ignoring_case(field, name); };
  if (is("Name")) return read_name(value, spectrum);
  if (is("Comment") || is("Comments")) return read_comment(value, spectrum);
  if (is("Charge") || is("Precursor_charge")) return read_charge(field, value, spectrum);
  if (is("MW") || is("PrecursorMZ") || is("Precursor_mz")) {
    const Result<double> number = read_positive(field, value);
    if (!number.ok()) return Failure{number.error()};
    (is("MW") ? spectrum.stated_mass : spectrum.precursor_mz) = number.value();
  } else if (is("Num peaks") || is("NumPeaks")) {
    const std::optional<int> count = parse_integer(value);
    if (!count || *count < 0)
      return lines_.failure(fmt::format("Num peaks is {}, expected a count", quote_text(value)));
    peaks_ = *count;
  }
  return success();
}

// "AAGK/2", "AAGK/2_1(1,K,Acetyl)_35eV", "n[43]AAGK/2".
Status MspReader::read_name(std::string_view value, Spectrum& spectrum) {
  if (!spectrum.title.empty())
    return lines_.failure(
        fmt::format("Name within the record of line {}, which has no Num peaks", spectrum.line));
  if (value.empty()) return lines_.failure("Name is empty");
  spectrum.title = value;
  const size_t slash = value.find('/');
  spectrum.sequence = value.substr(0, slash);
  is_plain_ = std::all_of(spectrum.sequence.begin(), spectrum.sequence.end(),
                          [](char c) { return c >= 'A' && c <= 'Z'; });
  if (slash == std::string_view::npos) return success();
  std::string_view charge = value.substr(slash + 1);
  charge = charge.substr(0, charge.find('_'));
  return read_charge("Name", charge, spectrum);
}

Status MspReader::read_charge(std::string_view field, std::string_view value, Spectrum& spectrum) {
  const std::optional<int> charge = parse_charge(value);
  if (!charge)
    return lines_.failure(fmt::format("the charge of {} is {}, expected a positive one such as 2",
                                      field, quote_text(value)));
  if (spectrum.precursor_charge != 0 && spectrum.precursor_charge != *charge)
    return lines_.failure(fmt::format("{} says charge {}, which was {} before", field, *charge,
                                      spectrum.precursor_charge));
  spectrum.precursor_charge = *charge;
  return success();
}

Result<double> MspReader::read_positive(std::string_view field, std::string_view value) {
  const std::optional<double> number = parse_number(value);
  if (!number || !(*number > 0))
    return lines_.failure(
        fmt::format("{} is {}, expected a number of more than 0", field, quote_text(value)));
  return *number;
}

Status MspReader::read_comment(std::string_view value, Spectrum& spectrum) {
  while (!(value = trimmed(value)).empty()) {
    std::string_view entry = take_entry(value);
    if (entry.size() >= 2 && entry.front() == '"' && entry.back() == '"')
      entry = entry.substr(1, entry.size() - 2);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = entry.substr(0, equals);
    const std::string_view text = entry.substr(equals + 1);
    const auto is = [&](std::string_view name) { return same_ignoring_case(key, name); };
    if (is("Parent")) {
      const Result<double> number = read_positive("Parent", text);
      if (!number.ok()) return Failure{number.error()};
      spectrum.precursor_mz = number.value();
    } else if (is("NCE") || is("CollisionEnergy") || is("Collision_energy")) {
      // "35", "35.0%", "35eV": the leading number.
      const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
      if (const auto number = parse_number(text.substr(0, end)))
        spectrum.collision_energy = *number;
    } else if (is("Mods")) {
      Status status = read_modifications(text);
      if (!status.ok()) return status;
    } else if (is("MS2PIP_ID")) {
      may_lack_peaks_ = true;
    }
  }
  return success();
}

// "0", "2/0,C,CAM/5,M,Oxidation", "2(0,C,CAM)(5,M,Oxidation)".
Status MspReader::read_modifications(std::string_view value) {
  modifications_.clear();
  std::string_view rest = value;
  const size_t digits = std::min(rest.find_first_of("/("), rest.size());
  const std::optional<int> count = parse_integer(rest.substr(0, digits));
  rest.remove_prefix(digits);
  bool is_well_formed = count.has_value() && *count >= 0;
  while (is_well_formed && !rest.empty()) {
    const bool in_parentheses = rest.front() == '(';
    rest.remove_prefix(1);
    std::string_view one = take_until(rest, in_parentheses ? ')' : '/');
    // The slash that ended this one begins the next.
    if (!in_parentheses && !rest.empty()) rest = {rest.data() - 1, rest.size() + 1};
    const std::optional<int> position = parse_integer(take_until(one, ','));
    take_until(one, ',');
    is_well_formed = position && *position >= -1 && !one.empty();
    if (is_well_formed)
      modifications_.emplace_back(*position,
                                  same_ignoring_case(one, "CAM") ? "Carbamidomethyl" : one);
    if (in_parentheses && is_well_formed && !rest.empty()) is_well_formed = rest.front() == '(';
  }
  if (!is_well_formed || modifications_.size() != static_cast<size_t>(*count))
    return lines_.failure(fmt::format(
        "Mods is {}, expected a count and as many 'position,residue,name'", quote_text(value)));
  return success();
}

Status MspReader::read_peaks(Spectrum& spectrum) {
  for (int64_t peaks = 0;;) {
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    std::string_view line = more.value() ? trimmed(lines_.line()) : std::string_view();
    if (line.empty()) {
      // A file that is torn shows it: its last record has no blank line behind it.
      if (peaks == peaks_ || (may_lack_peaks_ && more.value())) return success();
      return lines_.failure(more.value() ? lines_.number() : spectrum.line,
                            fmt::format("Num peaks is {}, and {} are there", peaks_, peaks));
    }
    while (!line.empty()) {
      // Annotations in quotes may have semicolons.
      size_t end = 0;
      for (bool in_quotes = false; end < line.size() && (in_quotes || line[end] != ';'); ++end)
        if (line[end] == '"') in_quotes = !in_quotes;
      const std::string_view peak = trimmed(line.substr(0, end));
      line = trimmed(line.substr(std::min(end + 1, line.size())));
      if (peak.empty()) continue;
      if (peaks == peaks_)
        return lines_.failure(
            fmt::format("a peak beyond the {} of Num peaks: {}", peaks_, quote_text(peak)));
      if (const auto problem = add_peak_line(peak, spectrum)) return lines_.failure(*problem);
      ++peaks;
    }
  }
}

Status MspReader::check(Spectrum& spectrum) {
  if (spectrum.precursor_charge == 0) {
    if (options_.default_charge == 0)
      return lines_.failure(spectrum.line, "the record has no charge, and no default is given");
    spectrum.precursor_charge = options_.default_charge;
  }
  if (std::isnan(spectrum.precursor_mz) && std::isnan(spectrum.stated_mass))
    return lines_.failure(spectrum.line, "the record has neither Parent nor PrecursorMZ nor MW");
  if (!is_plain_ || modifications_.empty()) return success();
  residues_ = std::move(spectrum.sequence);
  spectrum.sequence.clear();
  for (const auto& [position, name] : modifications_) {
    if (position >= static_cast<int>(residues_.size()))
      return lines_.failure(
          spectrum.line, fmt::format("Mods names position {} of a peptide of {} residues", position,
                                     residues_.size()));
    if (position < 0) spectrum.sequence += fmt::format("[{}]-", name);
  }
  for (size_t i = 0; i < residues_.size(); ++i) {
    spectrum.sequence += residues_[i];
    for (const auto& [position, name] : modifications_)
      if (position == static_cast<int>(i)) spectrum.sequence += fmt::format("[{}]", name);
  }
  return success();
}

}  // namespace fullbore::peptide
