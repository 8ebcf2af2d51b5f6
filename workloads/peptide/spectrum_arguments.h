#pragma once
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/train/config.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/spectrum_reader.h"

namespace fullbore {

/// What the commands that read spectra are given alike.
struct SpectrumArguments {
  int default_charge = 0;
  std::string on_bad = "try-charges";
  std::string
      left_out;  ///< the list of spectra that were left out; "": beside the output, if there is one
};
void add_spectrum_arguments(Command command, SpectrumArguments& arguments);

/// "key=value" of a command that uses a trained model: data.default_charge and data.min_peaks, which change nothing of
/// what its parameters mean. UsageError: any other.
void check_spectrum_overrides(const std::vector<std::string>& overrides);

/// --default-charge goes before data.default_charge.
peptide::SpectrumReadOptions reading_options(const SpectrumArguments& arguments,
                                             const Config& config);

/// What was made of profiles and of unknown charges, a line each for people; empty: there were none.
std::vector<std::string> reading_notes(const peptide::PreparationCounts& counts,
                                       const peptide::PreparationOptions& options);

}  // namespace fullbore
