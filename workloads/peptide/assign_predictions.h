#pragma once
#include <span>
#include <string>
#include <vector>

#include "workloads/peptide/predictions.h"

namespace fullbore::peptide {

/// How a spectrum may be called.
struct SpectrumName {
  std::string scan;    ///< "17", a native id that ends in "scan=17", or ""
  std::string title;   ///< or its native id
  uint64_t index = 0;  ///< among all spectra of its file, from 0
};

struct AssignedPredictions {
  std::vector<const Prediction*> of_spectrum;  ///< nullptr: there is none
  size_t unused = 0;  ///< predictions of other spectra, or worse ones of the same
};

/// The predictions of each spectrum of a file, in the order of the file.
///
/// Tools name spectra in three ways, and all are understood: by index from 0 ("ms_run[1]:index=3", a
/// column `index`), by scan ("ms_run[1]:scan=17", a column `scan`), or by a name. A name is the title or
/// the scan as it stands there; only where no name is either, it is taken for InstaNovo's "file:17", where
/// 17 is the scan, or the index of a spectrum that has none. Of several predictions of a spectrum that with
/// the highest score is taken, of equal ones the first. The file must outlive the result.
AssignedPredictions assign_predictions(const PredictionFile& file,
                                       std::span<const SpectrumName> spectra);

}  // namespace fullbore::peptide
