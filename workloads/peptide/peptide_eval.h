#pragma once
#include <string>
#include <vector>

#include "fullbore/app/margins.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "workloads/peptide/spectrum_arguments.h"

namespace fullbore {

/// What `eval` is asked of a model of peptides, or of a file of predictions.
struct PeptideEvalArguments {
  std::string subject;  ///< run, checkpoint, or predictions (*.mztab, *.csv)
  std::string data;     ///< annotated spectra; empty: what the run held out
  std::string against;  ///< a second subject to compare with; empty: none
  bool json = false;
  std::vector<std::string> overrides = {};  ///< of the models' data: check_spectrum_overrides()
  SpectrumArguments reading = {};
  JudgeArguments judge = {};         ///< of two subjects
  std::string unscorable = "wrong";  ///< what a truth that cannot be read counts as; or "leave-out"
};

/// Prints the field's measures of a subject, or the differences between two on the same spectra.
ExitCode eval_peptides(const PeptideEvalArguments& arguments);

/// How `eval` measures models of peptides and files of predictions.
EvalKind add_peptide_eval(Command eval);

}  // namespace fullbore
