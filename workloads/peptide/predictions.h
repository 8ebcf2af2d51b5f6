#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/atomic_file.h"
#include "fullbore/base/result.h"
#include "workloads/peptide/residues.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

/// A predicted peptide on its way to a file.
struct PredictedPeptide {
  std::string_view
      spectrum;            ///< spectrum_reference(): a native id, or "index=3", from 0 in its file
  std::string_view title;  ///< "": none
  std::span<const int32_t> ids;  ///< residues and terminal modifications; empty: none was predicted
  double score = 0;              ///< of the peptide, the higher the surer
  std::span<const double> residue_scores;  ///< one of each id, or none
  int precursor_charge = 0;
  double precursor_mz = 0;
  double retention_seconds = std::numeric_limits<double>::quiet_NaN();
  /// Of which precursor_charge had the best score; one or none: not tried.
  std::span<const int> tried_charges = {};
};

enum class PredictionFormat : uint8_t { mztab, csv };
/// By the name's end: .mztab, or .csv. Nothing for any other.
std::optional<PredictionFormat> prediction_format(std::string_view path);

/// What a file of predictions says of itself.
struct PredictionSource {
  std::string spectra_path;
  std::string software = "Fullbore";
  std::string version;
  std::vector<std::pair<std::string, std::string>> settings;  ///< checkpoint and the like
};

/// Writes predictions as they come: mzTab 1.0 with the columns that Casanovo has (scores of residues in
/// opt_ms_run[1]_aa_scores, modifications also as ProForma 2.0), or CSV. Modifications have their Unimod accessions, or
/// CHEMMOD with the mass where Unimod has none. Charges that were tried are in opt_ms_run[1]_tried_charges. The file appears, or replaces an
/// older one, when it is whole: until commit() there is a temporary beside it.
class PredictionWriter {
 public:
  static Result<PredictionWriter> create(const std::string& path, PredictionFormat format,
                                         const ResidueAlphabet& alphabet,
                                         const PredictionSource& source,
                                         FileSystem& files = system_files());
  /// What the file of spectra is: before the first write().
  void describe_run(const SpectrumFileTerms& terms);
  Status write(const PredictedPeptide& peptide);
  Status commit();
  int64_t written() const { return written_; }

 private:
  PredictionWriter(AtomicFile file, PredictionFormat format, const ResidueAlphabet& alphabet,
                   const PredictionSource& source);
  void append_mztab(const PredictedPeptide& peptide, double calculated_mz);
  void append_csv(const PredictedPeptide& peptide, double calculated_mz);
  void begin();
  Status flush();

  AtomicFile file_;
  PredictionFormat format_;
  ResidueAlphabet alphabet_;
  std::string engine_;  ///< as a parameter of mzTab
  PredictionSource source_;
  SpectrumFileTerms terms_;
  std::string buffer_;     ///< whole lines
  uint64_t checksum_ = 0;  ///< of the lines written before
  bool is_begun_ = false;
  int64_t written_ = 0;
};

/// mzTab of this engine ends with a comment that has the checksum of all lines before it: xxHash64 of each, with the
/// hash of those before it as the seed. Another comment, above the predictions, says that it does.
inline constexpr std::string_view kMztabAnnouncement =
    "COM\tThe last line has the checksum of all others.";
inline constexpr std::string_view kMztabChecksum = "COM\txxHash64 of the lines before: ";

/// "[+42.011]-AM[+15.995]K": what ProForma 2.0 makes of names like "M+15.995".
std::string proforma(const ResidueAlphabet& alphabet, std::span<const int32_t> ids);

/// A prediction as a file has it; NaN is what the file does not say.
struct Prediction {
  std::string spectrum;  ///< as written: "ms_run[1]:index=3", "yeast:17738", a title
  std::string scan;      ///< of a column of its own; "": none
  std::string sequence;  ///< as written; empty: none was predicted
  double score = 0;
  double precursor_mz = 0;
  int precursor_charge = 0;  ///< 0: not said
  uint64_t line = 0;         ///< where it begins
};

/// The predictions of a file, and which of its columns they are from.
struct PredictionFile {
  std::string path;
  PredictionFormat format = PredictionFormat::csv;
  std::string spectrum_column;
  std::string sequence_column;
  std::string score_column;  ///< "": the file has none
  std::vector<Prediction> predictions;
};

/// Reads mzTab (Casanovo and others) or a table with a line of names, separated by commas, tabs or
/// semicolons: InstaNovo's, this engine's, or any with a spectrum, a sequence and, if need be, a score.
/// Where a tool writes the sequence twice, that with modifications is taken. gzip is undone.
/// Failure: "file:line: ", the field, and what was expected; or a checksum that does not hold.
Result<PredictionFile> read_predictions(const std::string& path);

/// The ids of a prediction. Failure: "file:line: column: " and what the alphabet does not know.
Result<std::vector<int32_t>> prediction_ids(const PredictionFile& file,
                                            const Prediction& prediction,
                                            const ResidueAlphabet& alphabet);

}  // namespace fullbore::peptide
