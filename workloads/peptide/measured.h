#pragma once
#include <memory>
#include <vector>

#include "fullbore/data/batch_source.h"
#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/sized_order.h"
#include "workloads/peptide/spectrum_cache.h"

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
  /// Spectra of about as many peaks go together, in batches of no more slots than those need: peak_sizes().
  bool trim = false;
  /// Each epoch in another order; else in the cache's (trimmed: by size, and then in the cache's), and rows that the
  /// last batch has no spectrum for are empty: both masks are false there.
  bool shuffle = true;
  uint64_t seed = 0;
  /// Weights of the losses, by step. Its settings of spectra count only if these are to be corrupted, and of
  /// them only what SpectrumCorruption obeys.
  Curriculum curriculum = {CurriculumStage{}};
  /// Spectra are disturbed by their step's settings, each time they come anew: what is drawn is a function of
  /// the seed and the spectrum's number in the run. The most intense peak of what is left is 1 again.
  bool corrupt = false;
};

/// Batches of measured spectra, with the fields of spectrum_batch.h. Spectrum i of the run, place i % n in the order of
/// epoch i / n, is row i % B of batch i / B; or, if trimmed, where SizedOrder puts it. Each number of peak slots that
/// spectra need is one of shapes(). Where noise is added, they need room for the most that a stage adds.
class MeasuredBatches : public BatchSource {
 public:
  /// Those of the cache with these numbers. UsageError: options, or no spectra.
  MeasuredBatches(std::shared_ptr<const SpectrumCache> cache, std::vector<uint64_t> indices,
                  const MeasuredOptions& options);
  const std::vector<BatchField>& fields() const override { return shapes_.back(); }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override { return order_.size(position); }
  void fill(uint64_t position, std::span<void* const> buffers) const override;
  /// Of an epoch, the last of which may be of two epochs, or partly empty if nothing is shuffled.
  uint64_t batches() const { return order_.batches(); }

 private:
  std::vector<uint8_t> sizes();  // and makes the shapes

  std::shared_ptr<const SpectrumCache> cache_;
  std::vector<uint64_t> indices_;
  MeasuredOptions options_;
  std::vector<std::vector<BatchField>> shapes_;  // by number of peak slots, ascending
  SizedOrder order_;
};

}  // namespace fullbore::peptide
