#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/monitor/console.h"
#include "workloads/peptide/left_out.h"
#include "workloads/peptide/peptide_model.h"
#include "workloads/peptide/spectrum_cache.h"
#include "workloads/peptide/spectrum_reader.h"

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
  int charge = 0;  ///< that of spectrum.charges with the highest score, of equal ones the first
  std::vector<int32_t> ids;    ///< decoded: residues and terminal modifications
  std::vector<double> scores;  ///< of each id: its probability
  bool is_possible = false;    ///< the peptide has the precursor's mass
  double score = 0;  ///< their mean, 0 of none; 1 less where it is not possible, as Casanovo has it
};

struct PredictOptions {
  int64_t batch = 64;  ///< spectra at a time
  double precursor_ppm =
      50;  ///< a peptide further from its precursor's mass is impossible; 0: none is
  peptide::SpectrumReadOptions reading = {};
  peptide::LeftOutList* left_out = nullptr;
  /// Is called once, before the first spectrum is taken.
  std::function<void(const peptide::SpectrumFileTerms&)> opened = {};
};

/// Reads a file of spectra and predicts all that can be, in the file's order; -> what was read and dropped. DataError:
/// the file, or it has no spectra of MS level 2, or all are bad.
peptide::PreparationCounts predict_file(TrainedPeptideModel& model, const std::string& path,
                                        const PredictOptions& options, Console& console,
                                        const std::function<void(const PredictedSpectrum&)>& take);

/// "12 of 100 left out: 9 fewer than 10 peaks, 3 ...", or "" where none was.
std::string dropped_text(const peptide::PreparationCounts& counts,
                         const peptide::PreparationOptions& options);

}  // namespace fullbore
