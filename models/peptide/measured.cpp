#include "models/peptide/measured.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/permutation.h"
#include "models/peptide/spectrum_batch.h"

namespace fullbore::peptide {
namespace {

void write_empty(const SpectrumRow& row) {
  *row.precursor_mass = 0;
  *row.precursor_charge = 1;
  write_peaks({}, row);
  write_target({}, /*start_and_end=*/false, row);
}

// The most intense, where the cache has more than the batch.
void write_strongest(std::span<const uint64_t> peaks, const SpectrumRow& row) {
  if (peaks.size() <= row.mz.size()) return write_peaks(peaks, row);
  PeakRuns runs(peaks.size());
  for (const uint64_t peak : peaks) runs.add(peak_mz(peak), peak_intensity(peak));
  runs.end_run();
  write_peaks(runs.keep_most_intense(runs.sorted(), row.mz.size()), row);
}

}  // namespace

PeptideSplit split_by_peptide(const SpectrumCache& cache, double fraction, uint64_t seed) {
  if (!(fraction >= 0 && fraction < 1))
    throw UsageError(
        fmt::format("a validation fraction of {}, expected 0 to less than 1", fraction));
  constexpr uint64_t kSplit = 0x73706C6974;
  PeptideSplit split;
  for (uint64_t index = 0; index < cache.size(); ++index) {
    const uint64_t bits = philox_bits(seed, cache.peptide_hash(index), kSplit);
    const double place = static_cast<double>(bits >> 11) * 0x1p-53;
    (place < fraction ? split.validation : split.training).push_back(index);
  }
  return split;
}

MeasuredBatches::MeasuredBatches(std::shared_ptr<const SpectrumCache> cache,
                                 std::vector<uint64_t> indices, const MeasuredOptions& options)
    : cache_(std::move(cache)), indices_(std::move(indices)), options_(options) {
  const auto check = [](std::string_view field, int64_t value) {
    if (value < 1 || value > 1000000)
      throw UsageError(
          fmt::format("measured spectra: {} is {}, expected 1 to 1000000", field, value));
  };
  check("batch_size", options_.batch_size);
  check("max_peaks", options_.max_peaks);
  check("max_sequence", options_.max_sequence);
  check_curriculum(options_.weights);
  if (indices_.empty())
    throw UsageError(fmt::format("{} has no spectra for this part of the split", cache_->path()));
  const bool has_precursor_weight =
      std::any_of(options_.weights.begin(), options_.weights.end(),
                  [](const CurriculumStage& stage) { return stage.precursor_weight > 0; });
  fields_ = spectrum_fields(options_.batch_size, options_.max_peaks, options_.max_sequence,
                            has_precursor_weight);
}

uint64_t MeasuredBatches::batches() const {
  const auto rows = static_cast<uint64_t>(options_.batch_size);
  return (indices_.size() + rows - 1) / rows;
}

void MeasuredBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto rows = static_cast<uint64_t>(options_.batch_size);
  const uint64_t count = indices_.size();
  const CurriculumStage& stage = options_.weights[stage_at(options_.weights, position)];
  if (!options_.shuffle) position %= batches();
  for (uint64_t i = 0; i < rows; ++i) {
    const SpectrumRow row =
        spectrum_row(buffers, static_cast<int64_t>(i), options_.max_peaks, options_.max_sequence);
    uint64_t place = position * rows + i;
    if (!options_.shuffle && place >= count) {
      write_empty(row);
      continue;
    }
    if (options_.shuffle) place = Permutation(count, options_.seed, place / count)(place % count);
    const CachedSpectrum spectrum = cache_->get(indices_[place]);
    *row.precursor_mass = static_cast<float>(spectrum.precursor_mass);
    *row.precursor_charge = spectrum.precursor_charge;
    write_strongest(spectrum.peaks, row);
    write_target(spectrum.ids, options_.start_and_end, row);
  }
  write_weights(buffers, stage.spectrum_weight, stage.precursor_weight);
}

}  // namespace fullbore::peptide
