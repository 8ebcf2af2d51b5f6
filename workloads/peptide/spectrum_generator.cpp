#include "workloads/peptide/spectrum_generator.h"

#include <algorithm>
#include <span>

#include "workloads/peptide/ions.h"
#include "workloads/peptide/peak_runs.h"
#include "workloads/peptide/spectrum_corruption.h"
#include "workloads/peptide/spectrum_draws.h"

namespace fullbore::peptide {
namespace {

constexpr float kLeastIntensity = 0.01F;
constexpr float kLossIntensity = 0.3F;  // of the fragment that loses
using Purpose = SpectrumCorruption::Purpose;

}  // namespace

class SpectrumGenerator::Scratch {
 public:
  Scratch(size_t residues, size_t series, size_t noise)
      : mz(series * residues),
        intensity(series * residues),
        runs(series * residues + noise),
        corruption(std::max(series * residues * 2 + 1, std::max(residues, noise) + 2),
                   SpectrumCorruption::WeakPeaks::raised) {
    ids.reserve(residues);
    prefix.reserve(residues);
    series_ends.reserve(series);
  }

  void take_fragments();

  std::vector<int32_t> ids;
  std::vector<double> prefix;
  std::vector<double> mz;  // of all fragments, series after series
  std::vector<float> intensity;
  std::vector<size_t> series_ends;
  PeakRuns runs;
  SpectrumCorruption corruption;
};

void SpectrumGenerator::FreeScratch::operator()(Scratch* scratch) const { delete scratch; }

SpectrumGenerator::SpectrumGenerator(const SyntheticOptions& options, uint64_t key)
    : options_(options), key_(key), alphabet_(options.masses) {
  double sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < options_.charges.size(); ++i) {
    sum += options_.charges[i].share;
    if (options_.charges[i].share > 0) last = i;
  }
  double part = 0;
  for (const ChargeShare& share : options_.charges) {
    part += share.share;
    charge_limits_.push_back(limit_of(std::min(1.0, part / sum)));
  }
  charge_limits_[last] = limit_of(1);  // what rounding leaves
  for (int32_t i = 0; i < kResidues; ++i)
    losses_[static_cast<size_t>(i)] =
        mass_of(alphabet_.neutral_loss(kFirstResidue + i), alphabet_.constants());
}

SpectrumGenerator::ScratchPtr SpectrumGenerator::make_scratch(
    const SpectrumSettings& settings) const {
  const size_t series = options_.ion_types.size() * (options_.neutral_losses ? 2 : 1);
  return ScratchPtr(new Scratch(static_cast<size_t>(settings.max_length), series,
                                static_cast<size_t>(settings.noise_peaks)));
}

void SpectrumGenerator::generate(uint64_t index, const SpectrumSettings& settings, Scratch& scratch,
                                 const SpectrumRow& row) const {
  scratch.corruption.begin(key_, index);
  scratch.runs.clear();
  const bool clean = draw_peptide(settings, scratch, row);
  draw_fragments(scratch);
  double mass = scratch.prefix.back() + alphabet_.constants().water;
  if (clean)
    scratch.take_fragments();
  else
    mass = scratch.corruption.apply(mass, scratch.mz, scratch.intensity, scratch.series_ends,
                                    settings, scratch.runs);
  *row.precursor_mass = static_cast<float>(mass);
  write_spectrum(scratch, row);
}

// Residues, target and charge. Says whether the spectrum is to be clean.
bool SpectrumGenerator::draw_peptide(const SpectrumSettings& settings, Scratch& scratch,
                                     const SpectrumRow& row) const {
  const auto most = static_cast<size_t>(settings.max_length);
  const uint64_t* const words = scratch.corruption.draw(Purpose::peptide, 2 + (most + 1) / 2);
  const auto lengths = static_cast<uint32_t>(settings.max_length - settings.min_length + 1);
  const size_t n =
      static_cast<size_t>(settings.min_length) + integer_below(low_half(words[0]), lengths);
  size_t charge = 0;
  while (high_half(words[0]) >= charge_limits_[charge]) ++charge;
  *row.precursor_charge = options_.charges[charge].charge;

  scratch.ids.resize(n);
  scratch.prefix.resize(n);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t word = words[2 + i / 2];
    const uint32_t bits = i % 2 == 0 ? low_half(word) : high_half(word);
    const int32_t id = kFirstResidue + static_cast<int32_t>(integer_below(bits, kResidues));
    sum += alphabet_.mass(id);
    scratch.ids[i] = id;
    scratch.prefix[i] = sum;
  }
  write_target(scratch.ids, options_.start_and_end, row);
  return SpectrumCorruption::is_off(settings) || scratch.corruption.draw_clean(settings);
}

void SpectrumGenerator::draw_fragments(Scratch& scratch) const {
  const size_t n = scratch.prefix.size();
  size_t words = 0;
  for (const IonType type : options_.ion_types) words += (type == IonType::y ? 1 : 2) * (n - 1);
  const uint64_t* word = scratch.corruption.draw(Purpose::intensity, words);
  scratch.series_ends.clear();
  size_t count = 0;
  for (const IonType type : options_.ion_types) {
    const double* const mz = scratch.mz.data() + count;
    float* const intensity = scratch.intensity.data() + count;
    fragment_series(type, scratch.prefix, alphabet_.constants(), scratch.mz.data() + count);
    for (size_t i = 0; i + 1 < n; ++i)
      intensity[i] =
          std::max(kLeastIntensity,
                   type == IonType::y ? beta_2_2(word[i]) : beta_2_5(word[2 * i], word[2 * i + 1]));
    word += (type == IonType::y ? 1 : 2) * (n - 1);
    count += n - 1;
    scratch.series_ends.push_back(count);
    if (!options_.neutral_losses || type == IonType::a) continue;
    for (size_t i = 0; i + 1 < n; ++i) {
      const int32_t residue = scratch.ids[cleaved_residue(type, i + 1, n)];
      const double loss = losses_[static_cast<size_t>(residue - kFirstResidue)];
      if (loss == 0) continue;
      scratch.mz[count] = mz[i] - loss;
      scratch.intensity[count++] = kLossIntensity * intensity[i];
    }
    scratch.series_ends.push_back(count);
  }
}

void SpectrumGenerator::Scratch::take_fragments() {
  size_t i = 0;
  for (const size_t end : series_ends) {
    for (; i < end; ++i) runs.add(static_cast<float>(mz[i]), intensity[i]);
    runs.end_run();
  }
}

void SpectrumGenerator::write_spectrum(Scratch& scratch, const SpectrumRow& row) const {
  std::span<uint64_t> peaks = scratch.runs.sorted();
  if (options_.scale_to_base_peak) scale_to_base_peak(peaks);
  if (options_.most_intense > 0)
    peaks = scratch.runs.keep_most_intense(
        peaks, std::min(static_cast<size_t>(options_.most_intense), row.mz.size()));
  write_peaks(peaks, row);
}

}  // namespace fullbore::peptide
