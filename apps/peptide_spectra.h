#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/peptide_model.h"
#include "fullbore/monitor/console.h"
#include "models/peptide/spectrum_cache.h"
#include "models/peptide/spectrum_reader.h"

namespace fullbore {

/// How measured spectra are prepared for a model of this configuration.
peptide::PreparationOptions peptide_preparation(const Config& config, bool needs_sequence);

/// The spectra of data.path: a converted file as it is; any other is converted once and kept in the cache folder, by
/// its contents and the settings. DataError.
std::shared_ptr<const peptide::SpectrumCache> open_measured_spectra(const Config& config,
                                                                    Console& console);

/// What becomes of one spectrum of a file.
struct PredictedSpectrum {
  const peptide::Spectrum& spectrum;
  uint64_t index = 0;  ///< in its file
  const peptide::PreparedSpectrum& prepared;
  std::vector<int32_t> ids;    ///< decoded: residues and terminal modifications
  std::vector<double> scores;  ///< of each id: its probability
  double score = 0;            ///< their mean; 0 of none
  PredictedSlots slots;
};

/// Reads a file of spectra and predicts all that can be, in the file's order; -> what was read and dropped. `total`
/// spectra, if it is known, is for the progress shown.
peptide::PreparationCounts predict_file(TrainedPeptideModel& model, const std::string& path,
                                        int64_t batch, bool needs_sequence, Console& console,
                                        const std::function<void(const PredictedSpectrum&)>& take);

/// "12 spectra left out: 9 fewer than 10 peaks, 3 ...", or "" where none was.
std::string dropped_text(const peptide::PreparationCounts& counts,
                         const peptide::PreparationOptions& options);

}  // namespace fullbore
