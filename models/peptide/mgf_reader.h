#pragma once
#include "models/peptide/spectrum_reader.h"
#include "models/peptide/text_lines.h"

namespace fullbore::peptide {

/// Mascot generic format: BEGIN IONS, KEY=VALUE, "mz intensity [charge]", END IONS. CHARGE ahead of all
/// blocks is that of blocks without one.
/// Source: matrixscience.com/help/data_file_format.html.
class MgfReader : public SpectrumReader {
 public:
  MgfReader(TextLines lines, const SpectrumReadOptions& options);
  Result<bool> next(Spectrum& spectrum) override;

 private:
  Result<bool> find_block();
  Status read_block(Spectrum& spectrum);
  Status read_field(std::string_view line, Spectrum& spectrum);
  Status read_precursor(std::string_view value, Spectrum& spectrum);
  Status check(Spectrum& spectrum);

  TextLines lines_;
  SpectrumReadOptions options_;
  std::string charge_;         // of the block, as written
  std::string common_charge_;  // of the file
  uint64_t charge_line_ = 0;
};

}  // namespace fullbore::peptide
