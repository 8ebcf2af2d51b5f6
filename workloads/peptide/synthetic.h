#pragma once
#include "fullbore/data/batch_source.h"
#include "workloads/peptide/curriculum.h"
#include "workloads/peptide/spectrum_generator.h"
#include "workloads/peptide/synthetic_options.h"

namespace fullbore::peptide {

/// Batches of synthetic spectra. Batch p is that of optimiser step p: it has the stage of step p, so a
/// change of stage reaches prefetched and resumed work by itself. Spectrum i of the run is row i % B of
/// batch i / B. Fields: those of spectrum_batch.h, with precursor_weight if a stage of the curriculum
/// has one. With `trim` P is the most that a spectrum of the stage can have, and each P is one of shapes().
class SyntheticBatches : public BatchSource {
 public:
  /// The curriculum of a run without one is a single stage. UsageError: options or curriculum.
  SyntheticBatches(const SyntheticOptions& options, Curriculum curriculum);
  /// A fixed set of `batches` batches of one stage, with keys that training never has; batch p is batch
  /// p mod `batches`.
  static SyntheticBatches validation(const SyntheticOptions& options, const CurriculumStage& stage,
                                     uint64_t batches);

  const std::vector<BatchField>& fields() const override { return shapes_[largest_]; }
  std::vector<std::vector<BatchField>> shapes() const override { return shapes_; }
  size_t shape_at(uint64_t position) const override;
  void fill(uint64_t position, std::span<void* const> buffers) const override;

  const Curriculum& curriculum() const { return curriculum_; }
  const CurriculumStage& stage(uint64_t position) const;

 private:
  enum class Set : uint8_t { training, validation };
  SyntheticBatches(const SyntheticOptions& options, Curriculum curriculum, Set set,
                   uint64_t batches);

  SyntheticOptions options_;
  Curriculum curriculum_;
  SpectrumGenerator generator_;
  uint64_t batches_ = 0;  // 0: endless
  bool has_precursor_weight_ = false;
  std::vector<std::vector<BatchField>> shapes_;
  std::vector<size_t> shape_of_stage_;
  size_t largest_ = 0;
};

}  // namespace fullbore::peptide
