#pragma once
#include <string>
#include <vector>

#include "apps/spectrum_arguments.h"
#include "fullbore/base/error.h"

namespace fullbore {

/// What `eval` is asked of a model of peptides, or of a file of predictions.
struct PeptideEvalArguments {
  std::string subject;  ///< run, checkpoint, or predictions (*.mztab, *.csv)
  std::string data;     ///< annotated spectra; empty: what the run held out
  std::string against;  ///< a second subject to compare with; empty: none
  bool json = false;
  std::vector<std::string> overrides = {};  ///< of the models' data: check_spectrum_overrides()
  SpectrumArguments reading = {};
  std::string unscorable = "wrong";  ///< what a truth that cannot be read counts as; or "leave-out"
};

/// Is it a file of predictions, or a run or checkpoint of model.name=peptide?
bool is_peptide_subject(const std::string& subject);

/// Prints the field's measures of a subject, or the differences between two on the same spectra.
ExitCode eval_peptides(const PeptideEvalArguments& arguments);

}  // namespace fullbore
