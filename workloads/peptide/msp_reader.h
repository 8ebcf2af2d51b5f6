#pragma once
#include "fullbore/data/text_lines.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

/// NIST's library format: "Name: SEQUENCE/charge...", "MW:", "Comment:" with Parent=, Mods=, NCE= or
/// CollisionEnergy=, "Num peaks:", then lines of peaks, several of them separated by semicolons; a blank
/// line ends a record. Positions of Mods count from 0, the N-terminus is -1. MS2PIP (its records say
/// MS2PIP_ID=) counts peaks of no intensity too, whose lines it leaves out; they end sooner.
/// Modifications may stand in the name too: "PEPTIDE/2_1(3,T,Phospho)". A malformed record is a bad spectrum; reading
/// goes on behind the next blank line, or with the next Name.
/// Source: NIST MS Search, library text format (chemdata.nist.gov).
class MspReader : public SpectrumReader {
 public:
  MspReader(TextLines lines, const SpectrumReadOptions& options);
  SpectrumFileTerms terms() const override;

 protected:
  Result<bool> read(Spectrum& spectrum) override;

 private:
  Result<bool> find_record(Spectrum& spectrum);
  Status read_record(Spectrum& spectrum);
  void read_field(std::string_view line, Spectrum& spectrum);
  void read_name(std::string_view value, Spectrum& spectrum);
  void read_comment(std::string_view value, Spectrum& spectrum);
  bool read_modifications(std::string_view value);
  void read_charge(std::string_view field, std::string_view value, Spectrum& spectrum);
  void read_positive(std::string_view field, std::string_view value, double& number,
                     Spectrum& spectrum);
  Status read_peaks(Spectrum& spectrum);
  void add_peaks(std::string_view line, int64_t& peaks, Spectrum& spectrum);
  void check(Spectrum& spectrum);
  void bad(Spectrum& spectrum, std::string_view what) {
    spectrum.add_problem(lines_.number(), what);
  }

  TextLines lines_;
  std::string residues_;  // letters of the name
  bool is_plain_ = true;  // the name has no modifications of its own
  std::vector<std::pair<int, std::string>> modifications_;
  int64_t peaks_ = -1;
  uint64_t records_ = 0;
  bool is_begun_ = false;   // the current line is the Name of the next record
  bool is_astray_ = false;  // what stands between records has been told of
  bool may_lack_peaks_ = false;
};

}  // namespace fullbore::peptide
