#pragma once
#include "fullbore/data/text_lines.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore::peptide {

/// Mascot generic format: BEGIN IONS, KEY=VALUE, "mz intensity [charge]", END IONS. CHARGE ahead of all
/// blocks is that of blocks without one. A charge behind PEPMASS and one of CHARGE that disagree are both
/// charges that the spectrum may have.
/// A malformed block is a bad spectrum; reading goes on with the next BEGIN IONS.
/// Source: matrixscience.com/help/data_file_format.html.
class MgfReader : public SpectrumReader {
 public:
  MgfReader(TextLines lines, const SpectrumReadOptions& options);
  SpectrumFileTerms terms() const override;

 protected:
  Result<bool> read(Spectrum& spectrum) override;

 private:
  Result<bool> find_block(Spectrum& spectrum);
  Status read_block(Spectrum& spectrum);
  void read_field(std::string_view line, Spectrum& spectrum);
  void read_precursor(std::string_view value, Spectrum& spectrum);
  void read_charge(std::string_view value, Spectrum& spectrum);
  void check(Spectrum& spectrum);
  std::optional<std::vector<int>> charges(std::string_view value, std::string_view field,
                                          Spectrum& spectrum);
  void bad(Spectrum& spectrum, std::string_view what) {
    spectrum.add_problem(lines_.number(), what);
  }

  TextLines lines_;
  uint64_t blocks_ = 0;
  bool is_begun_ = false;   // the current line is the BEGIN IONS of the next block
  bool is_astray_ = false;  // what stands between blocks has been told of
  bool has_charge_ = false;
  std::vector<int> precursor_charges_;  // behind PEPMASS
  std::vector<int> common_charges_;     // of the file
};

}  // namespace fullbore::peptide
