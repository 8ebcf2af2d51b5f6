#include "workloads/peptide/msp_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "workloads/peptide/charges.h"
#include "workloads/peptide/peak_lines.h"

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

bool is_name(std::string_view line) { return same_ignoring_case(line.substr(0, 5), "Name:"); }

}  // namespace

MspReader::MspReader(TextLines lines, const SpectrumReadOptions& options)
    : SpectrumReader(lines.path(), options), lines_(std::move(lines)) {}

SpectrumFileTerms MspReader::terms() const {
  return {"[MS, MS:1002751, NIST MSP format, ]",
          "[MS, MS:1000774, multiple peak list nativeID format, ]"};
}

Result<bool> MspReader::read(Spectrum& spectrum) {
  spectrum.clear();
  Result<bool> found = find_record(spectrum);
  if (!found.ok() || !found.value() || !spectrum.problem.empty()) return found;
  spectrum.line = lines_.number();
  spectrum.index = records_++;
  residues_.clear();
  modifications_.clear();
  is_plain_ = true;
  peaks_ = -1;
  may_lack_peaks_ = false;
  const Status status = read_record(spectrum);
  if (!status.ok()) return Failure{status.error()};
  if (spectrum.problem.empty()) check(spectrum);
  return true;
}

// What stands between two records and belongs to none is told of once, as a bad spectrum.
Result<bool> MspReader::find_record(Spectrum& spectrum) {
  for (;;) {
    if (!is_begun_) {
      Result<bool> more = lines_.next();
      if (!more.ok() || !more.value()) return more;
    }
    is_begun_ = false;
    const std::string_view line = trimmed(lines_.line());
    if (line.empty() || line[0] == '#') continue;
    if (is_name(line)) {
      is_astray_ = false;
      return true;
    }
    if (is_astray_) continue;
    is_astray_ = true;
    bad(spectrum, fmt::format("{}, expected a record that begins with Name:", quote_text(line)));
    spectrum.line = lines_.number();
    spectrum.index = records_;
    return true;
  }
}

Status MspReader::read_record(Spectrum& spectrum) {
  for (bool is_first = true;; is_first = false) {
    const std::string_view line = trimmed(lines_.line());
    if (line.empty()) {
      bad(spectrum, fmt::format("the record of line {} ends without Num peaks", spectrum.line));
      return success();
    }
    if (!is_first && is_name(line)) {
      bad(spectrum,
          fmt::format("Name within the record of line {}, which has no Num peaks", spectrum.line));
      is_begun_ = true;
      return success();
    }
    read_field(line, spectrum);
    if (peaks_ >= 0) return read_peaks(spectrum);
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    if (more.value()) continue;
    spectrum.add_problem(spectrum.line, "the file ends before the Num peaks of this record");
    return success();
  }
}

void MspReader::read_field(std::string_view line, Spectrum& spectrum) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos)
    return bad(spectrum, fmt::format("{} is no 'Field: value'", quote_text(line)));
  const std::string_view field = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto is = [&](std::string_view name) { return same_ignoring_case(field, name); };
  if (is("Name")) {
    read_name(value, spectrum);
  } else if (is("Comment") || is("Comments")) {
    read_comment(value, spectrum);
  } else if (is("Charge") || is("Precursor_charge")) {
    read_charge(field, value, spectrum);
  } else if (is("MW")) {
    read_positive(field, value, spectrum.stated_mass, spectrum);
  } else if (is("PrecursorMZ") || is("Precursor_mz")) {
    read_positive(field, value, spectrum.precursor_mz, spectrum);
  } else if (is("Num peaks") || is("NumPeaks") || is("Num_peaks")) {
    const std::optional<int> count = parse_integer(value);
    const bool is_count = count && *count >= 0;
    if (!is_count)
      bad(spectrum, fmt::format("Num peaks is {}, expected a count", quote_text(value)));
    peaks_ = is_count ? *count : 0;
  }
}

// "AAGK/2", "AAGK/2_1(1,K,Acetyl)_35eV", "n[43]AAGK/2".
void MspReader::read_name(std::string_view value, Spectrum& spectrum) {
  if (value.empty()) return bad(spectrum, "Name is empty");
  spectrum.title = value;
  const size_t slash = value.find('/');
  spectrum.sequence = value.substr(0, slash);
  is_plain_ = std::all_of(spectrum.sequence.begin(), spectrum.sequence.end(),
                          [](char c) { return c >= 'A' && c <= 'Z'; });
  if (slash == std::string_view::npos) return;
  std::string_view rest = value.substr(slash + 1);
  read_charge("Name", take_until(rest, '_'), spectrum);
  // What follows may say something else: "_35eV", "_0".
  const std::string_view modifications = take_until(rest, '_');
  if (modifications.find('(') != std::string_view::npos && !read_modifications(modifications))
    modifications_.clear();
}

void MspReader::read_charge(std::string_view field, std::string_view value, Spectrum& spectrum) {
  const std::optional<std::vector<int>> charges = parse_charges(value);
  if (!charges)
    return bad(spectrum, fmt::format("the charge of {} is {}, expected a positive one such as 2",
                                     field, quote_text(value)));
  if (spectrum.charges.empty()) spectrum.charges = *charges;
  if (!charges->empty() && spectrum.charges != *charges)
    bad(spectrum, fmt::format("{} says charge {}, which was {} before", field,
                              fmt::join(*charges, " or "), fmt::join(spectrum.charges, " or ")));
}

void MspReader::read_positive(std::string_view field, std::string_view value, double& number,
                              Spectrum& spectrum) {
  const std::optional<double> read = parse_number(value);
  if (!read || !(*read > 0))
    return bad(spectrum,
               fmt::format("{} is {}, expected a number of more than 0", field, quote_text(value)));
  number = *read;
}

void MspReader::read_comment(std::string_view value, Spectrum& spectrum) {
  while (!(value = trimmed(value)).empty()) {
    std::string_view entry = take_entry(value);
    if (entry.size() >= 2 && entry.front() == '"' && entry.back() == '"')
      entry = entry.substr(1, entry.size() - 2);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = entry.substr(0, equals);
    std::string_view text = entry.substr(equals + 1);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
      text = text.substr(1, text.size() - 2);
    const auto is = [&](std::string_view name) { return same_ignoring_case(key, name); };
    if (is("Parent")) {
      read_positive("Parent", text, spectrum.precursor_mz, spectrum);
    } else if (is("NCE") || is("CollisionEnergy") || is("Collision_energy")) {
      // "35", "35.0%", "35eV": the leading number.
      const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
      if (const auto number = parse_number(text.substr(0, end)))
        spectrum.collision_energy = *number;
    } else if (is("Mods")) {
      if (!read_modifications(text))
        bad(spectrum,
            fmt::format("Mods is {}, expected a count and as many 'position,residue,name'",
                        quote_text(text)));
    } else if (is("MS2PIP_ID")) {
      may_lack_peaks_ = true;
    }
  }
}

// "0", "2/0,C,CAM/5,M,Oxidation", "2(0,C,CAM)(5,M,Oxidation)".
bool MspReader::read_modifications(std::string_view value) {
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
  return is_well_formed && modifications_.size() == static_cast<size_t>(*count);
}

Status MspReader::read_peaks(Spectrum& spectrum) {
  for (int64_t peaks = 0;;) {
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    const std::string_view line = more.value() ? trimmed(lines_.line()) : std::string_view();
    is_begun_ = is_name(line);  // some writers put no blank line between records
    if (!line.empty() && !is_begun_) {
      add_peaks(line, peaks, spectrum);
      continue;
    }
    // A file that is torn shows it: its last record has no blank line behind it.
    if (peaks != peaks_ && !(may_lack_peaks_ && more.value()))
      spectrum.add_problem(more.value() ? lines_.number() : spectrum.line,
                           fmt::format("Num peaks is {}, and {} are there", peaks_, peaks));
    return success();
  }
}

// "100 1", "100 1; 200 2;", "100 1 "annotation"".
void MspReader::add_peaks(std::string_view line, int64_t& peaks, Spectrum& spectrum) {
  while (!line.empty()) {
    // Annotations in quotes may have semicolons.
    size_t end = 0;
    for (bool in_quotes = false; end < line.size() && (in_quotes || line[end] != ';'); ++end)
      if (line[end] == '"') in_quotes = !in_quotes;
    const std::string_view peak = trimmed(line.substr(0, end));
    line = trimmed(line.substr(std::min(end + 1, line.size())));
    if (peak.empty()) continue;
    if (peaks == peaks_)
      bad(spectrum, fmt::format("a peak beyond the {} of Num peaks: {}", peaks_, quote_text(peak)));
    else if (const auto problem = add_peak_line(peak, spectrum))
      bad(spectrum, *problem);
    ++peaks;
  }
}

void MspReader::check(Spectrum& spectrum) {
  if (std::isnan(spectrum.precursor_mz) && std::isnan(spectrum.stated_mass))
    spectrum.add_problem(spectrum.line, "the record has neither Parent nor PrecursorMZ nor MW");
  if (!is_plain_ || modifications_.empty()) return;
  residues_ = std::move(spectrum.sequence);
  spectrum.sequence.clear();
  for (const auto& [position, name] : modifications_) {
    if (position >= static_cast<int>(residues_.size()))
      spectrum.add_problem(
          spectrum.line, fmt::format("Mods names position {} of a peptide of {} residues", position,
                                     residues_.size()));
    if (position < 0) spectrum.sequence += fmt::format("[{}]-", name);
  }
  for (size_t i = 0; i < residues_.size(); ++i) {
    spectrum.sequence += residues_[i];
    for (const auto& [position, name] : modifications_)
      if (position == static_cast<int>(i)) spectrum.sequence += fmt::format("[{}]", name);
  }
}

}  // namespace fullbore::peptide
