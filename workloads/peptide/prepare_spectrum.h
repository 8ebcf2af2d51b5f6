#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/peptide/peak_runs.h"
#include "workloads/peptide/residues.h"
#include "workloads/peptide/spectrum.h"

namespace fullbore::peptide {

/// What a measured spectrum must be like to be used, and what is left of it.
struct PreparationOptions {
  int64_t max_peaks = 100;  ///< so many of the most intense are kept
  int64_t min_peaks = 10;
  int min_length = 7;  ///< residues of the peptide
  int max_length = 30;
  int max_charge = 6;  ///< beyond it the model has no embedding
  double min_mz = 0;   ///< peaks out of [min_mz, max_mz] are left out
  double max_mz = std::numeric_limits<double>::infinity();
  double min_intensity = 0;     ///< likewise below this share of the base peak
  double remove_precursor = 0;  ///< Da: likewise within so much of the precursor's m/z; 0: none
  bool needs_sequence = true;   ///< false: sequences are not looked at
  /// The precursor's mass may differ so much from the sequence's, up to `isotopes` neutrons left out; 0:
  /// it is not compared. Where modifications were stripped from sequences, it differs.
  double precursor_ppm = 50;
  int isotopes = 1;
  /// Modifications that every such residue has though sequences do not say so, such as "C+57.021".
  std::vector<std::string> fixed_modifications = {};
};

enum class DropReason : uint8_t {
  few_peaks,
  high_charge,
  no_sequence,
  malformed_sequence,
  unknown_residue,
  unknown_modification,
  short_peptide,
  long_peptide,
  other_mass,    ///< the sequence's is not the precursor's
  unclear_mass,  ///< the file states one without saying of what
  bad_spectrum   ///< malformed, or without a charge: SpectrumReadOptions::on_bad
};
inline constexpr size_t kDropReasons = 11;
/// "fewer than 10 peaks", for reports.
std::string drop_reason_text(DropReason reason, const PreparationOptions& options);
std::string_view drop_reason_name(DropReason reason);  ///< "few_peaks"

struct PreparationCounts {
  uint64_t read = 0;
  uint64_t kept = 0;
  std::array<uint64_t, kDropReasons> dropped{};
  // Of the reader.
  uint64_t profiles = 0;   ///< centroided
  uint64_t ambiguous = 0;  ///< with several charges that they may have
  uint64_t others = 0;     ///< spectra of other MS levels, not among `read`
};
/// "no spectrum of MS level 2 (12 of other levels)": why nothing was read.
std::string nothing_read_text(const PreparationCounts& counts);

struct PreparedSpectrum {
  std::vector<uint64_t> peaks;  ///< as peak_runs.h packs them, by m/z, the most intense is 1
  double precursor_mass = 0;    ///< neutral, Da
  int precursor_charge = 0;
  std::vector<int32_t> ids;  ///< the peptide, terminal modifications included
};

/// Turns measured spectra into what the model reads, and counts what it drops.
class SpectrumPreparation {
 public:
  /// UsageError: options that cannot be, or a fixed modification that the alphabet lacks.
  SpectrumPreparation(const PreparationOptions& options, const ResidueAlphabet& alphabet);

  /// Why the spectrum is of no use; nothing if it is in `prepared`. Of several charges that it may have, the one by
  /// which its precursor's mass is nearest to its sequence's is taken, or the first where no sequence is looked at.
  std::optional<DropReason> prepare(const Spectrum& spectrum, PreparedSpectrum& prepared);
  /// One for each charge that the spectrum may have and the model can be told, without a sequence. Counts once.
  std::optional<DropReason> prepare_each(const Spectrum& spectrum,
                                         std::vector<PreparedSpectrum>& prepared);

  /// A spectrum that its reader left out.
  void add_bad() { count(DropReason::bad_spectrum); }

  const PreparationCounts& counts() const { return counts_; }
  const PreparationOptions& options() const { return options_; }

 private:
  std::optional<DropReason> count(std::optional<DropReason> reason);
  std::optional<DropReason> judge(const Spectrum& spectrum, PreparedSpectrum& prepared);
  std::optional<DropReason> judge_at(const Spectrum& spectrum, int charge,
                                     PreparedSpectrum& prepared);
  int nearest_charge(const Spectrum& spectrum, const PreparedSpectrum& prepared) const;
  std::optional<DropReason> read_sequence(const Spectrum& spectrum,
                                          PreparedSpectrum& prepared) const;
  std::optional<DropReason> find_mass(const Spectrum& spectrum, PreparedSpectrum& prepared) const;
  bool has_enough_peaks(const Spectrum& spectrum, PreparedSpectrum& prepared);

  PreparationOptions options_;
  ResidueAlphabet alphabet_;
  std::vector<int32_t> fixed_;  // what each id is read as
  PreparationCounts counts_;
};

}  // namespace fullbore::peptide
