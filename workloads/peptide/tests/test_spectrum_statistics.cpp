// What 100,000 synthetic spectra are like. A mean is allowed five of its standard errors.
#include <gtest/gtest.h>

#include <map>

#include "workloads/peptide/ions.h"
#include "workloads/peptide/tests/generated.h"

namespace fullbore::peptide {
namespace {

using testing::Generated;
using testing::Moments;
using testing::Spectra;

constexpr uint64_t kDraws = 100000;
// Spectra that have more peaks than that.
constexpr uint64_t kSpectra = kDraws / 7;

void expect_shares(const std::map<int64_t, double>& counts,
                   const std::map<int64_t, double>& shares) {
  double all = 0;
  for (const auto& [value, count] : counts) {
    all += count;
    EXPECT_TRUE(shares.contains(value)) << value;
  }
  for (const auto& [value, share] : shares) {
    ASSERT_TRUE(counts.contains(value)) << value;
    EXPECT_NEAR(counts.at(value) / all, share, 5 * std::sqrt(share * (1 - share) / all)) << value;
  }
}

TEST(SpectrumStatistics, LengthsResiduesAndCharges) {
  Spectra spectra({.min_length = 7, .max_length = 10});
  std::map<int64_t, double> lengths;
  std::map<int64_t, double> residues;
  std::map<int64_t, double> charges;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Generated& spectrum = spectra[i];
    const auto ids = spectrum.residues();
    lengths[static_cast<int64_t>(ids.size())] += 1;
    for (const int32_t id : ids) residues[id] += 1;
    charges[spectrum.precursor_charge] += 1;
  }
  expect_shares(lengths, {{7, .25}, {8, .25}, {9, .25}, {10, .25}});
  expect_shares(charges, {{2, .7}, {3, .25}, {4, .05}});
  std::map<int64_t, double> uniform;
  for (int64_t id = kFirstResidue; id < kFirstResidue + kResidues; ++id)
    uniform[id] = 1.0 / kResidues;
  expect_shares(residues, uniform);
}

TEST(SpectrumStatistics, OtherChargesAreInTheirShares) {
  SyntheticOptions options;
  options.charges = {{1, 0}, {2, 7}, {3, 3}, {4, 0}};  // shares need not add up to 1
  Spectra spectra({}, options);
  std::map<int64_t, double> charges;
  for (uint64_t i = 0; i < kDraws; ++i) charges[spectra[i].precursor_charge] += 1;
  expect_shares(charges, {{2, .7}, {3, .3}});
}

TEST(SpectrumStatistics, IntensitiesAreBeta) {
  for (const IonType type : {IonType::b, IonType::y, IonType::a}) {
    SyntheticOptions options;
    options.ion_types = {type};
    Spectra spectra({}, options);
    Moments intensity;
    for (uint64_t i = 0; i < kSpectra; ++i) {
      const Generated& spectrum = spectra[i];
      for (size_t j = 0; j < spectrum.peaks(); ++j) intensity.add(spectrum.intensity[j]);
    }
    const double a = 2;
    const double b = type == IonType::y ? 2 : 5;
    const double deviation = std::sqrt(a * b / ((a + b) * (a + b) * (a + b + 1)));
    EXPECT_NEAR(intensity.mean(), a / (a + b), intensity.margin(deviation) + 1e-5);  // the floor's
    EXPECT_NEAR(intensity.deviation(), deviation, 0.01 * deviation);
    EXPECT_GE(intensity.least(), 0.01F);
    EXPECT_LE(intensity.most(), 1);
  }
}

TEST(SpectrumStatistics, PeaksDropOut) {
  Spectra clean({});
  Spectra spectra({.peak_dropout = 0.15});
  double kept = 0;
  double all = 0;
  for (uint64_t i = 0; i < kSpectra; ++i) {
    all += static_cast<double>(clean[i].peaks());
    kept += static_cast<double>(spectra[i].peaks());
  }
  EXPECT_NEAR(kept / all, 0.85, 5 * std::sqrt(0.15 * 0.85 / all));
}

TEST(SpectrumStatistics, MassErrorsAreNormalInPpm) {
  Spectra clean({});
  Spectra spectra({.mass_error_ppm = 15});
  Moments peaks;
  Moments precursors;
  double within = 0;
  for (uint64_t i = 0; i < kSpectra; ++i) {
    const Generated expected = clean[i];
    const Generated& spectrum = spectra[i];
    ASSERT_EQ(spectrum.peaks(), expected.peaks());
    ASSERT_EQ(spectrum.targets, expected.targets);
    for (size_t j = 0; j < spectrum.peaks(); ++j) {
      // Peaks nearer than their errors may have changed places.
      const double error = (spectrum.mz[j] / static_cast<double>(expected.mz[j]) - 1) * 1e6;
      peaks.add(error);
      within += std::abs(error) < 15 ? 1 : 0;
    }
    precursors.add((spectrum.precursor_mass / static_cast<double>(expected.precursor_mass) - 1) *
                   1e6);
  }
  EXPECT_NEAR(peaks.mean(), 0, peaks.margin(15));
  EXPECT_NEAR(peaks.deviation(), 15, 0.15);
  EXPECT_NEAR(within / peaks.count(), 0.6827, 0.005);
  EXPECT_GT(peaks.most(), 15 * 4);
  EXPECT_NEAR(precursors.mean(), 0, precursors.margin(15));
  EXPECT_NEAR(precursors.deviation(), 15, 0.5);
}

TEST(SpectrumStatistics, IntensitiesVary) {
  SyntheticOptions options;
  options.ion_types = {IonType::y};
  Spectra clean({}, options);
  Spectra spectra({.intensity_variation = 0.2}, options);
  Moments factor;
  for (uint64_t i = 0; i < kSpectra; ++i) {
    const Generated expected = clean[i];
    const Generated& spectrum = spectra[i];
    EXPECT_EQ(spectrum.mz, expected.mz);
    for (size_t j = 0; j < spectrum.peaks(); ++j) {
      EXPECT_GE(spectrum.intensity[j], 0.01F);
      if (expected.intensity[j] > 0.2F)  // beyond the reach of the floor
        factor.add(spectrum.intensity[j] / expected.intensity[j]);
    }
  }
  EXPECT_NEAR(factor.mean(), 1, factor.margin(0.2));
  EXPECT_NEAR(factor.deviation(), 0.2, 0.002);
}

TEST(SpectrumStatistics, NoiseIsUniform) {
  Spectra spectra({.noise_peaks = 5, .peak_dropout = 1});
  Moments place;
  Moments intensity;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Generated& spectrum = spectra[i];
    ASSERT_EQ(spectrum.peaks(), 5U);
    for (size_t j = 0; j < 5; ++j) {
      place.add((spectrum.mz[j] - 50) / (spectrum.precursor_mass - 50));
      intensity.add(spectrum.intensity[j]);
    }
  }
  const double uniform = 1 / std::sqrt(12.0);
  EXPECT_GE(place.least(), 0);
  EXPECT_LE(place.most(), 1);
  EXPECT_NEAR(place.mean(), 0.5, place.margin(uniform));
  EXPECT_NEAR(place.deviation(), uniform, 0.002);
  EXPECT_GE(intensity.least(), 0.01F);
  EXPECT_LE(intensity.most(), 0.2F);
  EXPECT_NEAR(intensity.mean(), 0.105, intensity.margin(0.19 * uniform));
  EXPECT_NEAR(intensity.deviation(), 0.19 * uniform, 0.001);
}

TEST(SpectrumStatistics, NoiseInTwoTiers) {
  Spectra spectra({.noise_peaks = 4, .peak_dropout = 1, .high_noise_share = 0.3});
  Moments low;
  Moments high;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const Generated& spectrum = spectra[i];
    for (size_t j = 0; j < 4; ++j)
      (spectrum.intensity[j] < 0.15F ? low : high).add(spectrum.intensity[j]);
  }
  const double all = low.count() + high.count();
  EXPECT_NEAR(high.count() / all, 0.3, 5 * std::sqrt(0.3 * 0.7 / all));
  EXPECT_LE(low.most(), 0.1F);
  EXPECT_NEAR(low.mean(), 0.05, low.margin(0.03));
  EXPECT_GE(high.least(), 0.2F);
  EXPECT_LE(high.most(), 1);
  EXPECT_NEAR(high.mean(), 0.6, high.margin(0.24));
}

TEST(SpectrumStatistics, SignalIsSuppressed) {
  SyntheticOptions options;
  options.ion_types = {IonType::y};
  Spectra clean({}, options);
  Spectra spectra({.signal_suppression = 0.2}, options);
  Moments crushed;
  double all = 0;
  for (uint64_t i = 0; i < kSpectra; ++i) {
    const Generated expected = clean[i];
    const Generated& spectrum = spectra[i];
    for (size_t j = 0; j < spectrum.peaks(); ++j) {
      ++all;
      if (spectrum.intensity[j] != expected.intensity[j]) crushed.add(spectrum.intensity[j]);
    }
  }
  EXPECT_NEAR(crushed.count() / all, 0.2, 5 * std::sqrt(0.2 * 0.8 / all));
  EXPECT_GE(crushed.least(), 0.01F);
  EXPECT_LE(crushed.most(), 0.05F);
  EXPECT_NEAR(crushed.mean(), 0.03, crushed.margin(0.04 / std::sqrt(12.0)));
}

TEST(SpectrumStatistics, SomeSpectraStayClean) {
  SpectrumSettings hard{.noise_peaks = 8, .peak_dropout = 0.15, .mass_error_ppm = 15};
  Spectra clean({});
  Spectra corrupted(hard);
  hard.clean_data_ratio = 0.4;
  Spectra mixed(hard);
  double untouched = 0;
  for (uint64_t i = 0; i < kDraws / 2; ++i) {
    const Generated expected = clean[i];
    const Generated& spectrum = mixed[i];
    if (spectrum == expected)
      ++untouched;
    else
      ASSERT_EQ(spectrum, corrupted[i]);
  }
  EXPECT_NEAR(untouched / (kDraws / 2), 0.4, 5 * std::sqrt(0.24 / (kDraws / 2)));
}

TEST(SpectrumStatistics, PeakCountsAreThoseOfTheStages) {
  // Mean and maximum of peaks that the reference had, by stage of the default curriculum.
  constexpr double kMean[] = {15.0, 15.0, 17.7, 18.2, 23.0, 27.4};
  constexpr size_t kMost[] = {18, 18, 23, 24, 33, 42};
  const Curriculum curriculum = default_curriculum();
  for (size_t stage = 0; stage < curriculum.size(); ++stage) {
    Spectra spectra(curriculum[stage].spectra);
    Moments peaks;
    for (uint64_t i = 0; i < kDraws / 5; ++i) peaks.add(static_cast<double>(spectra[i].peaks()));
    EXPECT_NEAR(peaks.mean(), kMean[stage], 0.2) << stage;
    EXPECT_LE(peaks.most(), static_cast<double>(kMost[stage])) << stage;
    EXPECT_EQ(most_peaks({}, curriculum[stage].spectra), static_cast<int64_t>(kMost[stage]));
  }
}

}  // namespace
}  // namespace fullbore::peptide
