#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "fullbore/base/hash.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/modifications.h"
#include "workloads/peptide/predictions.h"

namespace fullbore::peptide {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr std::string_view kCsvHeader =
    "spectrum_id,title,sequence,score,aa_scores,precursor_charge,precursor_mz,calculated_mz,"
    "mass_error_ppm,retention_seconds,tried_charges\n";
constexpr std::string_view kMztabHeader =
    "\nPSH\tsequence\tPSM_ID\taccession\tunique\tdatabase\tdatabase_version\tsearch_engine\t"
    "search_engine_score[1]\tmodifications\tretention_time\tcharge\texp_mass_to_charge\t"
    "calc_mass_to_charge\tspectra_ref\tpre\tpost\tstart\tend\topt_ms_run[1]_aa_scores\t"
    "opt_global_cv_MS:1003169_proforma_peptidoform_sequence\topt_ms_run[1]_tried_charges\n";

/// Tabs and line ends would end a field.
std::string field(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return clean;
}

/// RFC 4180, section 2.
std::string csv_cell(std::string_view text) {
  if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += c;
    quoted += c;
  }
  return quoted + '"';
}

/// Of a local file. RFC 8089; RFC 3986 says what needs no escape.
std::string file_uri(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  std::string uri = "file://";
  for (const char c : error ? path : absolute.lexically_normal().string()) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                          std::string_view("/-._~").find(c) != std::string_view::npos;
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

double added_mass(const ResidueAlphabet& alphabet, int32_t id) {
  const char letter = alphabet.letter(id);
  return alphabet.mass(id) - (letter == 0 ? 0 : alphabet.mass(residue_id(letter)));
}

bool is_modified(const ResidueAlphabet& alphabet, int32_t id) {
  return alphabet.is_terminal(id) || (alphabet.is_residue(id) && alphabet.name(id).size() > 1);
}

/// "UNIMOD:35", or "CHEMMOD:+25.9793" where Unimod has no record. `next`: the residue that a modified terminus is of.
std::string accession(const ResidueAlphabet& alphabet, int32_t id, char next) {
  const bool terminal = alphabet.is_terminal(id);
  const double mass = added_mass(alphabet, id);
  const std::optional<UnimodRecord> record =
      unimod_record(mass, terminal ? next : alphabet.letter(id), terminal);
  return record ? fmt::format("UNIMOD:{}", record->record) : fmt::format("CHEMMOD:{:+.6g}", mass);
}

/// mzTab 1.0, 5.8: position and modification, the N-terminus at 0.
std::string modifications(const ResidueAlphabet& alphabet, std::span<const int32_t> ids) {
  std::string list;
  int position = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!alphabet.is_terminal(ids[i])) ++position;
    if (!is_modified(alphabet, ids[i])) continue;
    const char next = i + 1 < ids.size() ? alphabet.letter(ids[i + 1]) : '\0';
    list += fmt::format("{}{}-{}", list.empty() ? "" : ",", position,
                        accession(alphabet, ids[i], next));
  }
  return list.empty() ? "null" : list;
}

std::string letters(const ResidueAlphabet& alphabet, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids)
    if (!alphabet.is_terminal(id)) text += alphabet.is_residue(id) ? alphabet.letter(id) : 'X';
  return text;
}

std::string scores_text(std::span<const double> scores) {
  std::string list;
  for (const double score : scores) list += fmt::format("{}{:.5f}", list.empty() ? "" : ",", score);
  return list;
}

std::string number(double value, const char* missing) {
  return std::isfinite(value) ? fmt::format("{}", value) : missing;
}

std::string or_null(const std::string& text) { return text.empty() ? "null" : text; }

/// "[UNIMOD, UNIMOD:35, Oxidation, ]", a parameter.
std::string modification_term(const ResidueAlphabet& alphabet, int32_t id) {
  const bool terminal = alphabet.is_terminal(id);
  const std::optional<UnimodRecord> record =
      unimod_record(added_mass(alphabet, id), alphabet.letter(id), terminal);
  if (!record) return fmt::format("[CHEMMOD, CHEMMOD:{:+.6g}, , ]", added_mass(alphabet, id));
  return fmt::format("[UNIMOD, UNIMOD:{}, {}, ]", record->record, record->name);
}

std::string charges_text(std::span<const int> charges) {
  return charges.size() < 2 ? "" : fmt::format("{}", fmt::join(charges, "|"));
}

std::string metadata(const ResidueAlphabet& alphabet, const PredictionSource& source,
                     const std::string& engine, const SpectrumFileTerms& terms) {
  std::string text =
      "MTD\tmzTab-version\t1.0.0\nMTD\tmzTab-mode\tSummary\nMTD\tmzTab-type\tIdentification\n";
  const auto add = [&](std::string_view key, std::string_view value) {
    text += fmt::format("MTD\t{}\t{}\n", key, field(value));
  };
  add("description", fmt::format("{} identification file: de novo sequences", source.software));
  add("software[1]", engine);
  for (size_t i = 0; i < source.settings.size(); ++i)
    add(fmt::format("software[1]-setting[{}]", i + 1),
        fmt::format("{} = {}", source.settings[i].first, source.settings[i].second));
  add("psm_search_engine_score[1]", "[MS, MS:1001143, search engine specific score for PSMs, ]");
  add("fixed_mod[1]", "[MS, MS:1002453, No fixed modifications searched, ]");
  int modification = 0;
  for (int32_t id = kFirstResidue; id < alphabet.size(); ++id) {
    if (!is_modified(alphabet, id)) continue;
    const std::string key = fmt::format("variable_mod[{}]", ++modification);
    add(key, modification_term(alphabet, id));
    add(key + "-site", alphabet.is_terminal(id) ? "N-term" : std::string(1, alphabet.letter(id)));
  }
  if (modification == 0)
    add("variable_mod[1]", "[MS, MS:1002454, No variable modifications searched, ]");
  if (!terms.format.empty()) add("ms_run[1]-format", terms.format);
  add("ms_run[1]-location", file_uri(source.spectra_path));
  if (!terms.id_format.empty()) add("ms_run[1]-id_format", terms.id_format);
  return text;
}

}  // namespace

std::optional<PredictionFormat> prediction_format(std::string_view path) {
  std::string suffix = std::filesystem::path(path).extension().string();
  for (char& c : suffix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (suffix == ".mztab") return PredictionFormat::mztab;
  if (suffix == ".csv") return PredictionFormat::csv;
  return {};
}

std::string proforma(const ResidueAlphabet& alphabet, std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (!is_modified(alphabet, id)) {
      text += alphabet.is_residue(id) ? alphabet.letter(id) : 'X';
      continue;
    }
    if (!alphabet.is_terminal(id)) text += alphabet.letter(id);
    text += fmt::format("[{:+.6g}]", added_mass(alphabet, id));
    if (alphabet.is_terminal(id)) text += '-';
  }
  return text;
}

PredictionWriter::PredictionWriter(AtomicFile file, PredictionFormat format,
                                   const ResidueAlphabet& alphabet, const PredictionSource& source)
    : file_(std::move(file)),
      format_(format),
      alphabet_(alphabet),
      engine_(fmt::format("[, , {}, {}]", source.software, source.version)),
      source_(source) {}

void PredictionWriter::describe_run(const SpectrumFileTerms& terms) { terms_ = terms; }

void PredictionWriter::begin() {
  if (is_begun_) return;
  is_begun_ = true;
  buffer_ = format_ == PredictionFormat::csv
                ? std::string(kCsvHeader)
                : fmt::format("{}{}\n{}", metadata(alphabet_, source_, engine_, terms_),
                              kMztabAnnouncement, kMztabHeader);
}

Result<PredictionWriter> PredictionWriter::create(const std::string& path, PredictionFormat format,
                                                  const ResidueAlphabet& alphabet,
                                                  const PredictionSource& source,
                                                  FileSystem& files) {
  Result<AtomicFile> file = AtomicFile::create(path, files);
  if (!file.ok()) return Failure{file.error()};
  return PredictionWriter(std::move(file).value(), format, alphabet, source);
}

void PredictionWriter::append_mztab(const PredictedPeptide& peptide, double calculated_mz) {
  buffer_ += fmt::format(
      "PSM\t{}\t{}\tnull\tnull\tnull\tnull\t{}\t{}\t{}\t{}\t{}\t{}\t{}\tms_run[1]:{}"
      "\tnull\tnull\t"
      "null\tnull\t{}\t{}\t{}\n",
      or_null(letters(alphabet_, peptide.ids)), written_, engine_, number(peptide.score, "null"),
      modifications(alphabet_, peptide.ids), number(peptide.retention_seconds, "null"),
      peptide.precursor_charge, number(peptide.precursor_mz, "null"), number(calculated_mz, "null"),
      field(peptide.spectrum), or_null(scores_text(peptide.residue_scores)),
      or_null(proforma(alphabet_, peptide.ids)), or_null(charges_text(peptide.tried_charges)));
}

void PredictionWriter::append_csv(const PredictedPeptide& peptide, double calculated_mz) {
  buffer_ += fmt::format(
      "{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(peptide.spectrum), csv_cell(peptide.title),
      csv_cell(proforma(alphabet_, peptide.ids)), number(peptide.score, ""),
      csv_cell(scores_text(peptide.residue_scores)), peptide.precursor_charge,
      number(peptide.precursor_mz, ""), number(calculated_mz, ""),
      number((calculated_mz - peptide.precursor_mz) / peptide.precursor_mz * 1e6, ""),
      number(peptide.retention_seconds, ""), charges_text(peptide.tried_charges));
}

Status PredictionWriter::write(const PredictedPeptide& peptide) {
  const double proton = alphabet_.constants().proton;
  const double calculated_mz =
      peptide.ids.empty() || peptide.precursor_charge < 1
          ? std::nan("")
          : neutral_mass(alphabet_, peptide.ids) / peptide.precursor_charge + proton;
  begin();
  ++written_;
  if (format_ == PredictionFormat::csv)
    append_csv(peptide, calculated_mz);
  else
    append_mztab(peptide, calculated_mz);
  return buffer_.size() < kPieceBytes ? success() : flush();
}

Status PredictionWriter::flush() {
  for (std::string_view rest = buffer_; !rest.empty();) {
    const size_t end = rest.find('\n');
    checksum_ = hash_text(rest.substr(0, end), checksum_);
    rest.remove_prefix(end + 1);
  }
  Status status = file_.write(buffer_);
  buffer_.clear();
  return status;
}

Status PredictionWriter::commit() {
  begin();
  Status status = flush();
  if (status.ok() && format_ == PredictionFormat::mztab)
    status = file_.write(fmt::format("{}{}\n", kMztabChecksum, hash_hex(checksum_)));
  return status.ok() ? file_.commit() : status;
}

}  // namespace fullbore::peptide
