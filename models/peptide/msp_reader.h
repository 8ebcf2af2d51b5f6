#pragma once
#include "models/peptide/spectrum_reader.h"
#include "models/peptide/text_lines.h"

namespace fullbore::peptide {

/// NIST's library format: "Name: SEQUENCE/charge...", "MW:", "Comment:" with Parent=, Mods=, NCE= or
/// CollisionEnergy=, "Num peaks:", then lines of peaks, several of them separated by semicolons; a blank
/// line ends a record. Positions of Mods count from 0, the N-terminus is -1. MS2PIP (its records say
/// MS2PIP_ID=) counts peaks of no intensity too, whose lines it leaves out; they end sooner.
/// Source: NIST MS Search, library text format (chemdata.nist.gov).
class MspReader : public SpectrumReader {
 public:
  MspReader(TextLines lines, const SpectrumReadOptions& options);
  Result<bool> next(Spectrum& spectrum) override;

 private:
  Result<bool> find_record();
  Status read_record(Spectrum& spectrum);
  Status read_field(std::string_view line, Spectrum& spectrum);
  Status read_name(std::string_view value, Spectrum& spectrum);
  Status read_comment(std::string_view value, Spectrum& spectrum);
  Status read_modifications(std::string_view value);
  Status read_charge(std::string_view field, std::string_view value, Spectrum& spectrum);
  Result<double> read_positive(std::string_view field, std::string_view value);
  Status read_peaks(Spectrum& spectrum);
  Status check(Spectrum& spectrum);

  TextLines lines_;
  SpectrumReadOptions options_;
  std::string residues_;  // letters of the name
  bool is_plain_ = true;  // the name has no modifications of its own
  std::vector<std::pair<int, std::string>> modifications_;
  int64_t peaks_ = -1;
  bool may_lack_peaks_ = false;
};

}  // namespace fullbore::peptide
