#include "workloads/peptide/spectrum_corruption.h"

#include <algorithm>

#include "workloads/peptide/spectrum_draws.h"

namespace fullbore::peptide {
namespace {

constexpr float kLeastIntensity = 0.01F;
constexpr double kLeastNoiseMz = 50;

size_t whole_lanes(size_t count) { return (count + kDrawLanes - 1) / kDrawLanes * kDrawLanes; }

}  // namespace

SpectrumCorruption::SpectrumCorruption(size_t words, WeakPeaks weak_peaks)
    : weak_peaks_(weak_peaks),
      words_(whole_lanes(words)),
      radius_(words_.size()),
      normals_(words_.size()) {}

bool SpectrumCorruption::is_off(const SpectrumSettings& settings) {
  return settings.noise_peaks == 0 && settings.peak_dropout == 0 && settings.mass_error_ppm == 0 &&
         settings.intensity_variation == 0 && settings.signal_suppression == 0;
}

void SpectrumCorruption::begin(uint64_t key, uint64_t index) {
  key_ = key;
  index_ = index;
}

const uint64_t* SpectrumCorruption::draw(Purpose purpose, size_t count) {
  unit_.bits(key_, index_, static_cast<uint64_t>(purpose) << 32, 1, words_.data(),
             whole_lanes(count));
  return words_.data();
}

bool SpectrumCorruption::draw_clean(const SpectrumSettings& settings) {
  const uint64_t limit = limit_of(settings.clean_data_ratio);
  return limit > 0 && low_half(draw(Purpose::peptide, 2)[1]) < limit;
}

// Standard normals, each from a word: 32 bits for the radius, 32 for the angle.
const double* SpectrumCorruption::draw_normals(Purpose purpose, size_t count) {
  draw(purpose, count);
  for (size_t i = 0; i < whole_lanes(count); ++i) radius_[i] = words_[i] << 32;
  unit_.normals(radius_.data(), words_.data(), normals_.data(), whole_lanes(count));
  return normals_.data();
}

double SpectrumCorruption::apply(double mass, std::span<double> mz, std::span<float> intensity,
                                 std::span<const size_t> ends, const SpectrumSettings& settings,
                                 PeakRuns& runs) {
  const size_t count = ends.back();
  const double ppm = settings.mass_error_ppm * 1e-6;
  if (ppm > 0) {
    const double* const errors = draw_normals(Purpose::mass_error, count + 1);
    for (size_t i = 0; i < count; ++i) mz[i] *= 1 + ppm * errors[i];
    mass *= 1 + ppm * errors[count];
  }
  change_intensities(intensity.first(count), settings);
  const uint64_t dropped = limit_of(settings.peak_dropout);
  const uint64_t* const words = dropped > 0 ? draw(Purpose::dropout, (count + 1) / 2) : nullptr;
  size_t i = 0;
  for (const size_t end : ends) {
    for (; i < end; ++i) {
      if (words != nullptr &&
          (i % 2 == 0 ? low_half(words[i / 2]) : high_half(words[i / 2])) < dropped)
        continue;
      runs.add(static_cast<float>(mz[i]), intensity[i]);
    }
    runs.end_run();
  }
  if (settings.noise_peaks > 0) add_noise(mass, settings, runs);
  return mass;
}

void SpectrumCorruption::change_intensities(std::span<float> intensity,
                                            const SpectrumSettings& settings) {
  const bool raises = weak_peaks_ == WeakPeaks::raised;
  if (settings.intensity_variation > 0) {
    const double* const factors = draw_normals(Purpose::variation, intensity.size());
    for (size_t i = 0; i < intensity.size(); ++i) {
      const float least = raises ? kLeastIntensity : std::min(kLeastIntensity, intensity[i]);
      intensity[i] = std::max(
          least, intensity[i] * static_cast<float>(1 + settings.intensity_variation * factors[i]));
    }
  }
  if (settings.signal_suppression > 0) {
    const uint64_t limit = limit_of(settings.signal_suppression);
    const uint64_t* const words = draw(Purpose::suppression, intensity.size());
    for (size_t i = 0; i < intensity.size(); ++i) {
      if (low_half(words[i]) >= limit) continue;
      const float crushed = uniform_between(high_half(words[i]), 0.01F, 0.05F);
      intensity[i] = raises ? crushed : std::min(crushed, intensity[i]);
    }
  }
}

void SpectrumCorruption::add_noise(double mass, const SpectrumSettings& settings, PeakRuns& runs) {
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

}  // namespace fullbore::peptide
