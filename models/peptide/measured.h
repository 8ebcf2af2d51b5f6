#pragma once
#include <memory>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "models/peptide/curriculum.h"
#include "models/peptide/spectrum_cache.h"

namespace fullbore::peptide {

/// The spectra of a cache in two parts: in the second is about `fraction` of all peptides, chosen by the
/// seed, and no peptide is in both, whatever its modifications; I and L are one. The same peptide goes
/// the same way in every cache. UsageError: a fraction out of [0, 1).
struct PeptideSplit {
  std::vector<uint64_t> training;
  std::vector<uint64_t> validation;
};
PeptideSplit split_by_peptide(const SpectrumCache& cache, double fraction, uint64_t seed);

struct MeasuredOptions {
  int64_t batch_size = 64;
  int64_t max_peaks = 100;    ///< P; of more peaks the most intense are kept
  int64_t max_sequence = 25;  ///< S
  bool start_and_end = true;
  /// Each epoch in another order; else in the cache's, and rows that the last batch has no spectrum for
  /// are empty: both masks are false there.
  bool shuffle = true;
  uint64_t seed = 0;
  Curriculum weights = {
      CurriculumStage{}};  ///< of the losses, by step; its data settings do not count
};

/// Batches of measured spectra, with the fields of spectrum_batch.h. Spectrum i of the run is row i % B of
/// batch i / B: epoch i / n, and place i % n in the order of that epoch.
class MeasuredBatches : public BatchSource {
 public:
  /// Those of the cache with these numbers. UsageError: options, or no spectra.
  MeasuredBatches(std::shared_ptr<const SpectrumCache> cache, std::vector<uint64_t> indices,
                  const MeasuredOptions& options);
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  /// Of an epoch, the last of which may be of two epochs, or partly empty if nothing is shuffled.
  uint64_t batches() const;

 private:
  std::shared_ptr<const SpectrumCache> cache_;
  std::vector<uint64_t> indices_;
  MeasuredOptions options_;
  std::vector<BatchField> fields_;
};

}  // namespace fullbore::peptide
