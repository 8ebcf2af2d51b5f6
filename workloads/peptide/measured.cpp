#include "workloads/peptide/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/spectrum_corruption.h"

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

/// Disturbs spectra of a cache.
class Corrupter {
 public:
  Corrupter(const SpectrumSettings& settings, size_t most_peaks, uint64_t key)
      : settings_(settings),
        key_(key),
        mz_(most_peaks),
        intensity_(most_peaks),
        runs_(most_peaks + noise(settings)),
        corruption_(std::max({most_peaks + 1, noise(settings), size_t{2}}),
                    SpectrumCorruption::WeakPeaks::kept) {}

  /// Writes mass and peaks of spectrum `index` of the run.
  void write(uint64_t index, const CachedSpectrum& spectrum, const SpectrumRow& row) {
    corruption_.begin(key_, index);
    if (corruption_.draw_clean(settings_)) return write_strongest(spectrum.peaks, row);
    const size_t count = spectrum.peaks.size();
    for (size_t i = 0; i < count; ++i) {
      mz_[i] = peak_mz(spectrum.peaks[i]);
      intensity_[i] = peak_intensity(spectrum.peaks[i]);
    }
    runs_.clear();
    *row.precursor_mass = static_cast<float>(corruption_.apply(
        spectrum.precursor_mass, mz_, intensity_, std::span(&count, 1), settings_, runs_));
    const std::span<uint64_t> peaks = runs_.keep_most_intense(runs_.sorted(), row.mz.size());
    scale_to_base_peak(peaks);
    write_peaks(peaks, row);
  }

 private:
  static size_t noise(const SpectrumSettings& settings) {
    return static_cast<size_t>(settings.noise_peaks);
  }

  SpectrumSettings settings_;
  uint64_t key_;
  std::vector<double> mz_;
  std::vector<float> intensity_;
  PeakRuns runs_;
  SpectrumCorruption corruption_;
};

uint64_t corruption_key(uint64_t seed) {
  constexpr uint64_t kCorruption = 0x636F727275707421;
  return philox_bits(seed, 0, kCorruption);
}

/// The most peaks that a spectrum gains.
size_t most_added(const MeasuredOptions& options) {
  int most = 0;
  if (options.corrupt)
    for (const CurriculumStage& stage : options.curriculum)
      most = std::max(most, stage.spectra.noise_peaks);
  return static_cast<size_t>(most);
}

MeasuredOptions checked(const MeasuredOptions& options) {
  const auto check = [](std::string_view field, int64_t value) {
    if (value < 1 || value > 1000000)
      throw UsageError(
          fmt::format("measured spectra: {} is {}, expected 1 to 1000000", field, value));
  };
  check("batch_size", options.batch_size);
  check("max_peaks", options.max_peaks);
  check("max_sequence", options.max_sequence);
  check_curriculum(options.curriculum);
  return options;
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
    : cache_(std::move(cache)),
      indices_(std::move(indices)),
      options_(checked(options)),
      order_(sizes(), options.batch_size, options.shuffle, options.seed) {}

// The size of each spectrum, and the shapes that there are spectra of.
std::vector<uint8_t> MeasuredBatches::sizes() {
  if (indices_.empty())
    throw UsageError(fmt::format("{} has no spectra for this part of the split", cache_->path()));
  const std::vector<int64_t> all = peak_sizes(options_.max_peaks, options_.trim);
  const size_t added = most_added(options_);
  std::vector<size_t> of_spectrum;
  std::vector<uint8_t> used(all.size(), 0);
  for (const uint64_t index : indices_) {
    of_spectrum.push_back(peak_size_of(all, cache_->get(index).peaks.size() + added));
    used[of_spectrum.back()] = 1;
  }
  const bool has_precursor_weight =
      std::any_of(options_.curriculum.begin(), options_.curriculum.end(),
                  [](const CurriculumStage& stage) { return stage.precursor_weight > 0; });
  std::vector<uint8_t> shape_of(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    shape_of[i] = static_cast<uint8_t>(shapes_.size());
    if (used[i] != 0)
      shapes_.push_back(spectrum_fields(options_.batch_size, all[i], options_.max_sequence,
                                        has_precursor_weight));
  }
  std::vector<uint8_t> result;
  for (const size_t size : of_spectrum) result.push_back(shape_of[size]);
  return result;
}

void MeasuredBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const CurriculumStage& stage = options_.curriculum[stage_at(options_.curriculum, position)];
  const SizedOrder::Batch batch = order_.batch(position);
  const int64_t peaks = shapes_[batch.size][0].type.shape[1];
  std::optional<Corrupter> corrupter;
  if (options_.corrupt && !SpectrumCorruption::is_off(stage.spectra))
    corrupter.emplace(stage.spectra, cache_->most_peaks(), corruption_key(options_.seed));
  for (size_t i = 0; i < batch.items.size(); ++i) {
    const SpectrumRow row =
        spectrum_row(buffers, static_cast<int64_t>(i), peaks, options_.max_sequence);
    if (batch.items[i] == SizedOrder::kNobody) {
      write_empty(row);
      continue;
    }
    const CachedSpectrum spectrum = cache_->get(indices_[batch.items[i]]);
    *row.precursor_mass = static_cast<float>(spectrum.precursor_mass);
    *row.precursor_charge = spectrum.precursor_charge;
    if (corrupter)
      corrupter->write(position * batch.items.size() + i, spectrum, row);
    else
      write_strongest(spectrum.peaks, row);
    write_target(spectrum.ids, options_.start_and_end, row);
  }
  write_weights(buffers, stage.spectrum_weight, stage.precursor_weight);
}

}  // namespace fullbore::peptide
