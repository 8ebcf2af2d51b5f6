#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/threads.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/config.h"
#include "models/peptide/prepare_spectrum.h"
#include "models/peptide/residues.h"

namespace fullbore {

/// A trained model of peptides, out of a run or a checkpoint.
struct TrainedPeptideModel {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  Config config;
  peptide::ResidueAlphabet alphabet;
  State state;  ///< the parameters
};
/// DataError if it is damaged, UsageError if it is of another model.
TrainedPeptideModel load_peptide_model(const std::string& run_or_checkpoint);

/// What the model makes of one spectrum. Spans are good during the call they are given to.
struct PredictedSlots {
  std::span<const int32_t> answers;      ///< [T,S] likeliest symbol after each supervision step
  std::span<const float> probabilities;  ///< [S] of the last answer's symbols
};

/// The model compiled for batches of spectra.
class PeptidePredictor {
 public:
  /// The model must outlive it. `batch`: spectra at a time.
  PeptidePredictor(TrainedPeptideModel& model, int64_t batch);
  ~PeptidePredictor();

  int64_t batch() const { return batch_; }
  /// At most batch() spectra; `take` is called for each in order.
  void predict(std::span<const peptide::PreparedSpectrum> spectra,
               const std::function<void(size_t index, const PredictedSlots&)>& take);

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  void fill(std::span<const peptide::PreparedSpectrum> spectra);

  TrainedPeptideModel& model_;
  int64_t batch_;
  int64_t answers_;
  int64_t slots_;
  Team team_;
  std::unique_ptr<Program> program_;
  std::vector<std::unique_ptr<void, Free>> memory_;  ///< the batch's fields
  std::vector<void*> buffers_;
};

}  // namespace fullbore
