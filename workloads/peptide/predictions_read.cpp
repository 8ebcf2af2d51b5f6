#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fullbore/base/hash.h"
#include "fullbore/base/text.h"
#include "workloads/peptide/charges.h"
#include "workloads/peptide/peptide_scores.h"
#include "workloads/peptide/predictions.h"
#include "workloads/peptide/table_rows.h"

namespace fullbore::peptide {
namespace {

/// What tools call a column, the best first. InstaNovo's `predictions` come before `sequence`, which in
/// its tables is the truth; of Casanovo's columns that with modifications comes first.
using Names = std::vector<std::string>;
const Names kSpectrum{"spectra_ref", "spectrum_id", "spectrum", "index",
                      "title",       "scan_number", "scan",     "scans"};
const Names kScan{"scan_number", "scan", "scans"};
const Names kSequence{"opt_global_cv_ms:1003169_proforma_peptidoform_sequence",
                      "opt_ms_run[1]_proforma",
                      "predictions",
                      "prediction",
                      "preds",
                      "predicted_sequence",
                      "modified_sequence",
                      "sequence",
                      "peptide"};
const Names kScore{"search_engine_score[1]", "score", "log_probs", "confidence", "log_prob"};
const Names kMz{"exp_mass_to_charge", "precursor_mz"};
const Names kCharge{"charge", "precursor_charge"};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

class PredictionReader {
 public:
  explicit PredictionReader(TextLines lines) : rows_(std::move(lines), '\t') {}
  Result<PredictionFile> read();

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();
  struct Columns {
    size_t spectrum = kNone, scan = kNone, sequence = kNone, score = kNone, mz = kNone,
           charge = kNone;
  };

  void settle_format(std::string_view first_line);
  Status check_line(std::string_view line);
  Result<bool> next_row();
  Status read_header();
  Status read_mztab_row();
  Status read_row();
  size_t find(const Names& names) const;
  Result<size_t> require(const char* what, const Names& names) const;
  std::string_view cell(size_t column) const;
  Failure bad_cell(size_t column, std::string_view expected) const;
  Status read_number(size_t column, bool may_be_infinite, double& value) const;

  TableRows rows_;
  PredictionFile file_;
  bool is_settled_ = false;
  uint64_t checksum_ = 0;  ///< of the lines so far, kMztabChecksum
  bool is_announced_ = false;
  bool is_checked_ = false;  ///< the last line was the checksum, and right
  Names header_;             ///< as written
  Names searched_;           ///< in lower case
  Columns columns_;
};

size_t PredictionReader::find(const Names& names) const {
  for (const std::string& name : names) {
    const auto found = std::find(searched_.begin(), searched_.end(), name);
    if (found != searched_.end()) return static_cast<size_t>(found - searched_.begin());
  }
  return kNone;
}

Result<size_t> PredictionReader::require(const char* what, const Names& names) const {
  const size_t column = find(names);
  if (column != kNone) return column;
  std::string hint;
  for (const std::string& name : names)
    if (hint.empty()) hint = did_you_mean(name, searched_);
  return rows_.failure(fmt::format(
      "no column has {}: expected one of {}, found {}.{}", what, fmt::join(names, ", "),
      fmt::join(std::span(header_).first(std::min<size_t>(header_.size(), 30)), ", "), hint));
}

Status PredictionReader::read_header() {
  header_.clear();
  for (const std::string& name : rows_.cells()) header_.emplace_back(trimmed(name));
  searched_.clear();
  for (const std::string& name : header_) {
    searched_.push_back(lower(name));
    const auto end = searched_.end() - 1;
    if (!name.empty() && std::find(searched_.begin(), end, *end) != end)
      return rows_.failure(fmt::format("two columns are named {}", quote_text(name)));
  }
  const Result<size_t> spectrum = require("the spectrum", kSpectrum);
  if (!spectrum.ok()) return Failure{spectrum.error()};
  const Result<size_t> sequence = require("the sequence", kSequence);
  if (!sequence.ok()) return Failure{sequence.error()};
  columns_ = {spectrum.value(), find(kScan), sequence.value(),
              find(kScore),     find(kMz),   find(kCharge)};
  file_.spectrum_column = header_[columns_.spectrum];
  file_.sequence_column = header_[columns_.sequence];
  file_.score_column = columns_.score == kNone ? "" : header_[columns_.score];
  return success();
}

std::string_view PredictionReader::cell(size_t column) const {
  if (column == kNone) return {};
  const std::string_view text = trimmed(rows_.cells()[column]);
  return text == "null" ? std::string_view() : text;
}

Failure PredictionReader::bad_cell(size_t column, std::string_view expected) const {
  return rows_.failure(
      fmt::format("{} is {}, expected {}", header_[column], quote_text(cell(column)), expected));
}

Status PredictionReader::read_number(size_t column, bool may_be_infinite, double& value) const {
  value = kNoValue;
  const std::string_view text = cell(column);
  if (text.empty()) return success();
  const std::string name = lower(text);
  // The logarithm of a probability that has underflowed.
  if (may_be_infinite && (name == "-inf" || name == "-infinity")) {
    value = -std::numeric_limits<double>::infinity();
    return success();
  }
  const std::optional<double> number = parse_number(text);
  if (!number) return bad_cell(column, "a number");
  value = *number;
  return success();
}

Status PredictionReader::read_row() {
  if (rows_.cells().size() != header_.size())
    return rows_.failure(fmt::format("the row has {} cells, and {} columns are named",
                                     rows_.cells().size(), header_.size()));
  Prediction prediction;
  prediction.line = rows_.line();
  prediction.spectrum = cell(columns_.spectrum);
  if (prediction.spectrum.empty()) return bad_cell(columns_.spectrum, "what names a spectrum");
  if (lower(file_.spectrum_column) == "index") prediction.spectrum.insert(0, "index=");
  if (columns_.spectrum == columns_.scan) prediction.spectrum.insert(0, "scan=");
  prediction.scan = cell(columns_.scan);
  prediction.sequence = cell(columns_.sequence);
  Status status = read_number(columns_.score, /*may_be_infinite=*/true, prediction.score);
  if (status.ok()) status = read_number(columns_.mz, false, prediction.precursor_mz);
  if (!status.ok()) return status;
  if (prediction.precursor_mz <= 0) return bad_cell(columns_.mz, "more than 0");
  if (const std::string_view charge = cell(columns_.charge); !charge.empty()) {
    const std::optional<int> value = parse_charge(charge);
    if (!value) return bad_cell(columns_.charge, "a positive whole charge");
    prediction.precursor_charge = *value;
  }
  file_.predictions.push_back(std::move(prediction));
  return success();
}

Status PredictionReader::read_mztab_row() {
  const std::string_view kind = trimmed(rows_.cells()[0]);
  if (kind == "PSH") return header_.empty() ? read_header() : rows_.failure("a second line PSH");
  if (kind == "PSM")
    return header_.empty() ? rows_.failure("a line PSM before PSH, which names the columns")
                           : read_row();
  // mzTab 1.0, section 5: sections on proteins, peptides and small molecules.
  for (const std::string_view other : {"PRH", "PRT", "PEH", "PEP", "SMH", "SML"})
    if (kind == other) return success();
  return rows_.failure(fmt::format(
      "the line begins with {}, expected one of MTD, COM, PSH, PSM, PRH, PRT, PEH, PEP, SMH, SML",
      quote_text(kind)));
}

void PredictionReader::settle_format(std::string_view first_line) {
  is_settled_ = true;
  const std::string_view kind = first_line.substr(0, first_line.find('\t'));
  if (kind == "MTD" || kind == "COM" || kind == "PSH") {
    file_.format = PredictionFormat::mztab;
    return;
  }
  for (const char separator : {'\t', ',', ';'})
    if (first_line.find(separator) != std::string_view::npos) {
      rows_.set_separator(separator);
      return;
    }
}

Status PredictionReader::check_line(std::string_view line) {
  if (is_checked_) return rows_.lines().failure("the file is damaged: a line behind its checksum");
  if (line.starts_with(kMztabChecksum)) {
    if (line.substr(kMztabChecksum.size()) != hash_hex(checksum_))
      return rows_.lines().failure(
          fmt::format("the file is damaged: the checksum of the lines before is {}, not {}. "
                      "Without its lines COM it is "
                      "read as it is",
                      hash_hex(checksum_), quote_text(line.substr(kMztabChecksum.size()))));
    is_checked_ = true;
    return success();
  }
  is_announced_ = is_announced_ || line == kMztabAnnouncement;
  checksum_ = hash_text(line, checksum_);
  return success();
}

/// The next row that may hold anything; false at the end.
Result<bool> PredictionReader::next_row() {
  TextLines& lines = rows_.lines();
  for (;;) {
    Result<bool> more = lines.next();
    if (!more.ok() || !more.value()) return more;
    const std::string_view line = lines.line();
    if (const Status checked = check_line(line); !checked.ok()) return Failure{checked.error()};
    if (trimmed(line).empty()) continue;
    if (!is_settled_) settle_format(line);
    // Metadata is free text, in which a quote is a quote.
    const std::string_view kind = line.substr(0, line.find('\t'));
    if (file_.format == PredictionFormat::mztab && (kind == "MTD" || kind == "COM")) continue;
    const Status status = rows_.split();
    if (!status.ok()) return Failure{status.error()};
    return true;
  }
}

Result<PredictionFile> PredictionReader::read() {
  file_.path = rows_.lines().path();
  for (;;) {
    const Result<bool> more = next_row();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) break;
    const bool is_mztab = file_.format == PredictionFormat::mztab;
    const Status status = is_mztab          ? read_mztab_row()
                          : header_.empty() ? read_header()
                                            : read_row();
    if (!status.ok()) return Failure{status.error()};
  }
  if (is_announced_ && !is_checked_)
    return rows_.lines().failure(
        "the file is damaged: the line with its checksum is missing. "
        "Without its lines COM it is read as it is");
  if (!file_.predictions.empty()) return std::move(file_);
  const char* const reason = !is_settled_      ? "the file is empty"
                             : header_.empty() ? "there is no line PSH"
                                               : "there is nothing below the names of the columns";
  return Failure{fmt::format(
      "{}: no predictions: {}; expected mzTab, or a table whose first line names its columns",
      file_.path, reason)};
}

}  // namespace

Result<PredictionFile> read_predictions(const std::string& path) {
  Result<InputBytes> bytes = InputBytes::open(path);
  if (!bytes.ok()) return Failure{bytes.error()};
  return PredictionReader(TextLines(std::move(bytes).value())).read();
}

Result<std::vector<int32_t>> prediction_ids(const PredictionFile& file,
                                            const Prediction& prediction,
                                            const ResidueAlphabet& alphabet) {
  if (prediction.sequence.empty()) return std::vector<int32_t>();
  PeptideText text = alphabet.read(prediction.sequence);
  if (text.problem == PeptideText::Problem::none) return std::move(text.ids);
  return Failure{fmt::format("{}:{}: {}: {}: {}", file.path, prediction.line, file.sequence_column,
                             quote_text(prediction.sequence), text.message)};
}

}  // namespace fullbore::peptide
