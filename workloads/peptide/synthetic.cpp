#include "workloads/peptide/synthetic.h"

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"

namespace fullbore::peptide {
namespace {

// Keys of the sets are draws from the run's seed, at counters of their own.
uint64_t key_of(uint64_t seed, uint64_t set) {
  constexpr uint64_t kSpectra = 0x7370656374726121;
  return philox_bits(seed, set, kSpectra);
}

SyntheticOptions checked(const SyntheticOptions& options) {
  check_synthetic_options(options);
  return options;
}

}  // namespace

SyntheticBatches::SyntheticBatches(const SyntheticOptions& options, Curriculum curriculum)
    : SyntheticBatches(options, std::move(curriculum), Set::training, 0) {}

SyntheticBatches SyntheticBatches::validation(const SyntheticOptions& options,
                                              const CurriculumStage& stage, uint64_t batches) {
  if (batches == 0) throw UsageError("a validation set has at least one batch");
  CurriculumStage only = stage;
  only.first_step = 0;
  return {options, {only}, Set::validation, batches};
}

SyntheticBatches::SyntheticBatches(const SyntheticOptions& options, Curriculum curriculum, Set set,
                                   uint64_t batches)
    : options_(checked(options)),
      curriculum_(std::move(curriculum)),
      generator_(options_, key_of(options_.seed, static_cast<uint64_t>(set))),
      batches_(batches) {
  check_curriculum(curriculum_);
  for (const CurriculumStage& stage : curriculum_)
    has_precursor_weight_ = has_precursor_weight_ || stage.precursor_weight > 0;
  for (const CurriculumStage& stage : curriculum_) {
    const int64_t peaks = options_.trim
                              ? std::min(options_.max_peaks, most_peaks(options_, stage.spectra))
                              : options_.max_peaks;
    const auto same = std::find_if(shapes_.begin(), shapes_.end(), [&](const auto& fields) {
      return fields[0].type.shape[1] == peaks;
    });
    shape_of_stage_.push_back(static_cast<size_t>(same - shapes_.begin()));
    if (same != shapes_.end()) continue;
    shapes_.push_back(
        spectrum_fields(options_.batch_size, peaks, options_.max_sequence, has_precursor_weight_));
    if (peaks > shapes_[largest_][0].type.shape[1]) largest_ = shapes_.size() - 1;
  }
}

size_t SyntheticBatches::shape_at(uint64_t position) const {
  return shape_of_stage_[stage_at(curriculum_, position)];
}

const CurriculumStage& SyntheticBatches::stage(uint64_t position) const {
  return curriculum_[stage_at(curriculum_, position)];
}

void SyntheticBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const CurriculumStage& now = stage(position);
  const int64_t peaks = shapes_[shape_at(position)][0].type.shape[1];
  const SpectrumGenerator::ScratchPtr scratch = generator_.make_scratch(now.spectra);
  if (batches_ != 0) position %= batches_;
  const uint64_t first = position * static_cast<uint64_t>(options_.batch_size);
  for (int64_t row = 0; row < options_.batch_size; ++row)
    generator_.generate(first + static_cast<uint64_t>(row), now.spectra, *scratch,
                        spectrum_row(buffers, row, peaks, options_.max_sequence));
  write_weights(buffers, now.spectrum_weight, now.precursor_weight);
}

}  // namespace fullbore::peptide
