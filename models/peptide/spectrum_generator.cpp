#include "models/peptide/spectrum_generator.h"

#include <algorithm>
#include <span>

#include "fullbore/base/draw_unit.h"
#include "models/peptide/ions.h"
#include "models/peptide/peak_runs.h"
#include "models/peptide/spectrum_draws.h"

namespace fullbore::peptide {
namespace {

constexpr float kLeastIntensity = 0.01F;
constexpr float kLossIntensity = 0.3F;  // of the fragment that loses
constexpr double kLeastNoiseMz = 50;

// What draws are for, the upper half of their counter: none depends on how many others there are.
enum class Purpose : uint64_t {
  peptide,
  intensity,
  dropout,
  mass_error,
  variation,
  suppression,
  noise
};

size_t whole_lanes(size_t count) { return (count + kDrawLanes - 1) / kDrawLanes * kDrawLanes; }

}  // namespace

class SpectrumGenerator::Scratch {
 public:
  Scratch(size_t residues, size_t series, size_t noise)
      : mz(series * residues),
        intensity(series * residues),
        runs(series * residues + noise),
        words_(whole_lanes(std::max(series * residues * 2 + 1, std::max(residues, noise) + 2))),
        radius_(words_.size()),
        errors_(words_.size()),
        variations_(words_.size()) {
    ids.reserve(residues);
    prefix.reserve(residues);
    series_ends.reserve(series);
  }

  void begin(uint64_t key, uint64_t index) {
    key_ = key;
    index_ = index;
  }
  /// Good until the next draw.
  const uint64_t* draw(Purpose purpose, size_t count) {
    unit_.bits(key_, index_, static_cast<uint64_t>(purpose) << 32, 1, words_.data(),
               whole_lanes(count));
    return words_.data();
  }

  /// Fragments, all that they suffer, and noise, into `runs`; returns the precursor's mass.
  double corrupt(double mass, const SpectrumSettings& settings);
  void take_fragments();

  std::vector<int32_t> ids;
  std::vector<double> prefix;
  std::vector<double> mz;  // of all fragments, series after series
  std::vector<float> intensity;
  std::vector<size_t> series_ends;
  PeakRuns runs;

 private:
  /// Standard normals, each from a word: 32 bits for the radius, 32 for the angle.
  const double* draw_normals(Purpose purpose, size_t count, std::vector<double>& out) {
    draw(purpose, count);
    for (size_t i = 0; i < whole_lanes(count); ++i) radius_[i] = words_[i] << 32;
    unit_.normals(radius_.data(), words_.data(), out.data(), whole_lanes(count));
    return out.data();
  }
  void add_noise(double mass, const SpectrumSettings& settings);

  const DrawUnit unit_ = draw_units().front();
  uint64_t key_ = 0;
  uint64_t index_ = 0;
  std::vector<uint64_t> words_;
  std::vector<uint64_t> radius_;
  std::vector<double> errors_;
  std::vector<double> variations_;
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
  scratch.begin(key_, index);
  scratch.runs.clear();
  const bool clean = draw_peptide(settings, scratch, row);
  draw_fragments(scratch);
  double mass = scratch.prefix.back() + alphabet_.constants().water;
  if (clean)
    scratch.take_fragments();
  else
    mass = scratch.corrupt(mass, settings);
  *row.precursor_mass = static_cast<float>(mass);
  write_spectrum(scratch, row);
}

// Residues, target and charge. Says whether the spectrum is to be clean.
bool SpectrumGenerator::draw_peptide(const SpectrumSettings& settings, Scratch& scratch,
                                     const SpectrumRow& row) const {
  const auto most = static_cast<size_t>(settings.max_length);
  const uint64_t* const words = scratch.draw(Purpose::peptide, 2 + (most + 1) / 2);
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
  const bool corrupts = settings.noise_peaks > 0 || settings.peak_dropout > 0 ||
                        settings.mass_error_ppm > 0 || settings.intensity_variation > 0 ||
                        settings.signal_suppression > 0;
  return !corrupts || low_half(words[1]) < limit_of(settings.clean_data_ratio);
}

void SpectrumGenerator::draw_fragments(Scratch& scratch) const {
  const size_t n = scratch.prefix.size();
  size_t words = 0;
  for (const IonType type : options_.ion_types) words += (type == IonType::y ? 1 : 2) * (n - 1);
  const uint64_t* word = scratch.draw(Purpose::intensity, words);
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

double SpectrumGenerator::Scratch::corrupt(double mass, const SpectrumSettings& settings) {
  const size_t count = series_ends.back();
  const double ppm = settings.mass_error_ppm * 1e-6;
  if (ppm > 0) {
    const double* const errors = draw_normals(Purpose::mass_error, count + 1, errors_);
    for (size_t i = 0; i < count; ++i) mz[i] *= 1 + ppm * errors[i];
    mass *= 1 + ppm * errors[count];
  }
  if (settings.intensity_variation > 0) {
    const double* const factors = draw_normals(Purpose::variation, count, variations_);
    for (size_t i = 0; i < count; ++i)
      intensity[i] = std::max(
          kLeastIntensity,
          intensity[i] * static_cast<float>(1 + settings.intensity_variation * factors[i]));
  }
  if (settings.signal_suppression > 0) {
    const uint64_t limit = limit_of(settings.signal_suppression);
    const uint64_t* const words = draw(Purpose::suppression, count);
    for (size_t i = 0; i < count; ++i)
      if (low_half(words[i]) < limit)
        intensity[i] = uniform_between(high_half(words[i]), 0.01F, 0.05F);
  }
  const uint64_t dropped = limit_of(settings.peak_dropout);
  const uint64_t* const words = dropped > 0 ? draw(Purpose::dropout, (count + 1) / 2) : nullptr;
  size_t i = 0;
  for (const size_t end : series_ends) {
    for (; i < end; ++i) {
      if (words != nullptr &&
          (i % 2 == 0 ? low_half(words[i / 2]) : high_half(words[i / 2])) < dropped)
        continue;
      runs.add(static_cast<float>(mz[i]), intensity[i]);
    }
    runs.end_run();
  }
  if (settings.noise_peaks > 0) add_noise(mass, settings);
  return mass;
}

void SpectrumGenerator::Scratch::add_noise(double mass, const SpectrumSettings& settings) {
  const auto count = static_cast<size_t>(settings.noise_peaks);
  const uint64_t* const words = draw(Purpose::noise, count);
  const bool two_tiers = settings.high_noise_share >= 0;
  // 16 of the bits of the intensity choose the tier.
  const auto high = static_cast<uint32_t>(std::max(0.0, settings.high_noise_share) * 0x1p16);
  for (size_t i = 0; i < count; ++i) {
    const double place = static_cast<double>(low_half(words[i])) * 0x1p-32;
    const uint32_t bits = high_half(words[i]);
    float height = 0;
    if (!two_tiers)
      height = uniform_between(bits, 0.01F, 0.2F);
    else if ((bits & 0xFFFF) < high)
      height = uniform_between(bits & 0xFFFF0000, 0.2F, 1.0F);
    else
      height = uniform_between(bits & 0xFFFF0000, 0.0F, 0.1F);
    runs.add(static_cast<float>(kLeastNoiseMz + (mass - kLeastNoiseMz) * place), height);
  }
  runs.end_run();
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
