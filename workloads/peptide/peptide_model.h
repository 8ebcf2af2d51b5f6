#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/threads.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/config.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/residues.h"

namespace fullbore {

/// A trained model of peptides, out of a run or a checkpoint.
struct TrainedPeptideModel {
  std::string path;  ///< of the checkpoint
  int64_t step = 0;
  Config config;
  peptide::ResidueAlphabet alphabet;
  State state;  ///< the parameters
};
/// DataError if it is damaged, UsageError if it is of another model. `overrides` go before its configuration.
TrainedPeptideModel load_peptide_model(const std::string& run_or_checkpoint,
                                       const std::vector<std::string>& overrides = {});

/// What the model makes of one spectrum. Spans are good during the call they are given to.
struct PredictedSlots {
  std::span<const int32_t> answers;      ///< [T,S] likeliest symbol after each supervision step
  std::span<const float> probabilities;  ///< [S] of the last answer's symbols
};

/// The model compiled for batches of spectra. With data.trim_peaks those of about as many peaks go together, each batch
/// through a program of no more peak slots than it needs, compiled when it is first met.
class PeptidePredictor {
 public:
  /// The model must outlive it. `batch`: spectra at a time.
  PeptidePredictor(TrainedPeptideModel& model, int64_t batch);
  ~PeptidePredictor();

  /// Any number of spectra; `take` is called for each in order. More than a batch at once leave more to choose which
  /// go together.
  void predict(std::span<const peptide::PreparedSpectrum> spectra,
               const std::function<void(size_t index, const PredictedSlots&)>& take);
  /// Programs compiled so far.
  size_t programs() const;

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  struct Answers {
    std::vector<int32_t> slots;        // [T,S]
    std::vector<float> probabilities;  // [S]
  };
  Program& program(size_t size);
  void fill(std::span<const peptide::PreparedSpectrum> spectra, std::span<const size_t> rows,
            int64_t peaks);
  void run(std::span<const peptide::PreparedSpectrum> spectra, std::span<const size_t> rows,
           std::vector<Answers>& answers);

  TrainedPeptideModel& model_;
  int64_t batch_;
  int64_t answers_;
  int64_t slots_;
  std::vector<int64_t> sizes_;                       ///< numbers of peak slots
  std::vector<std::unique_ptr<Program>> programs_;   ///< by size; none: not met yet
  std::shared_ptr<Arena> arena_;                     ///< of all of them, which take turns
  std::vector<std::unique_ptr<void, Free>> memory_;  ///< the fields of the widest batch
  std::vector<void*> buffers_;
};

}  // namespace fullbore
