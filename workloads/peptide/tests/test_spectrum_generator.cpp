#include "workloads/peptide/spectrum_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "fullbore/base/error.h"
#include "workloads/peptide/tests/generated.h"

namespace fullbore::peptide {
namespace {

using testing::Generated;
using ::testing::HasSubstr;
using testing::Spectra;

const SpectrumSettings kRealistic = default_curriculum().back().spectra;

std::vector<float> theoretical_mz(const std::vector<int32_t>& ids, const IonOptions& options) {
  std::vector<float> mz;
  for (const Ion& ion : theoretical_ions(ResidueAlphabet(), ids, options))
    mz.push_back(static_cast<float>(ion.mz));
  std::sort(mz.begin(), mz.end());
  return mz;
}

TEST(SpectrumGenerator, CleanSpectraAreTheTheoreticalIons) {
  for (const bool losses : {false, true}) {
    for (const auto& types :
         {std::vector{IonType::b, IonType::y}, std::vector{IonType::y, IonType::b, IonType::a}}) {
      SyntheticOptions options;
      options.ion_types = types;
      options.neutral_losses = losses;
      Spectra spectra({.min_length = 2, .max_length = 20}, options);
      for (uint64_t i = 0; i < 300; ++i) {
        const Generated& spectrum = spectra[i];
        const auto expected =
            theoretical_mz(spectrum.residues(), {.types = types, .neutral_losses = losses});
        ASSERT_EQ(spectrum.peaks(), std::min<size_t>(expected.size(), 100));
        for (size_t j = 0; j < spectrum.peaks(); ++j) ASSERT_FLOAT_EQ(spectrum.mz[j], expected[j]);
        EXPECT_FLOAT_EQ(spectrum.precursor_mass,
                        static_cast<float>(neutral_mass(ResidueAlphabet(), spectrum.residues())));
      }
    }
  }
}

TEST(SpectrumGenerator, LossesHaveThreeTenthsOfTheirFragment) {
  SyntheticOptions options;
  options.ion_types = {IonType::y};
  Spectra plain({.min_length = 2, .max_length = 2}, options);
  options.neutral_losses = true;
  Spectra losing({.min_length = 2, .max_length = 2}, options);
  int found = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const Generated parent = plain[i];
    const Generated& spectrum = losing[i];
    if (spectrum.peaks() == 1) continue;
    ++found;
    EXPECT_FLOAT_EQ(spectrum.intensity[0], 0.3F * parent.intensity[0]);
    EXPECT_EQ(spectrum.mz[1], parent.mz[0]);
  }
  EXPECT_GT(found, 50);
}

TEST(SpectrumGenerator, PeaksAreSortedAndPadded) {
  SyntheticOptions options;
  options.ion_types = {IonType::b, IonType::y, IonType::a};
  options.neutral_losses = true;
  options.max_peaks = 150;
  Spectra spectra({.min_length = 2,
                   .max_length = 30,
                   .noise_peaks = 20,
                   .peak_dropout = 0.3,
                   .mass_error_ppm = 5000,  // enough to change places
                   .intensity_variation = 0.5},
                  options);
  for (uint64_t i = 0; i < 2000; ++i) {
    const Generated& spectrum = spectra[i];
    const size_t peaks = spectrum.peaks();
    ASSERT_TRUE(
        std::is_sorted(spectrum.mz.begin(), spectrum.mz.begin() + static_cast<long>(peaks)));
    for (size_t j = 0; j < spectrum.mz.size(); ++j) {
      ASSERT_EQ(spectrum.peak_mask[j], j < peaks ? 1 : 0);
      ASSERT_EQ(spectrum.mz[j] > 0, j < peaks);
      ASSERT_EQ(spectrum.intensity[j] > 0, j < peaks);
    }
  }
}

TEST(SpectrumGenerator, TargetsAreFramedAndPadded) {
  Spectra spectra({.min_length = 2, .max_length = 40}, {});
  SyntheticOptions options;
  options.start_and_end = false;
  Spectra bare({.min_length = 2, .max_length = 40}, options);
  for (uint64_t i = 0; i < 500; ++i) {
    const Generated framed = spectra[i];
    const Generated& residues = bare[i];
    const auto slots =
        static_cast<size_t>(std::count(framed.target_mask.begin(), framed.target_mask.end(), 1));
    EXPECT_EQ(framed.targets[0], kStart);
    if (slots < 25) {
      EXPECT_EQ(framed.targets[slots - 1], kEnd);
    }
    for (size_t s = slots; s < 25; ++s) EXPECT_EQ(framed.targets[s], kPad);
    for (size_t s = 0; s < 25; ++s) EXPECT_EQ(framed.target_mask[s], s < slots ? 1 : 0);
    for (size_t s = 0; s + 1 < 25 && framed.targets[s + 1] >= kFirstResidue; ++s)
      EXPECT_EQ(residues.targets[s], framed.targets[s + 1]);
    EXPECT_NE(residues.targets[0], kStart);
  }
}

TEST(SpectrumGenerator, TooManyPeaksKeepTheLowest) {
  SyntheticOptions narrow;
  narrow.max_peaks = 7;
  Spectra few(kRealistic, narrow);
  Spectra all(kRealistic);
  for (uint64_t i = 0; i < 200; ++i) {
    const Generated whole = all[i];
    const Generated& cut = few[i];
    ASSERT_EQ(cut.peaks(), 7U);
    EXPECT_TRUE(std::equal(cut.mz.begin(), cut.mz.end(), whole.mz.begin()));
    EXPECT_TRUE(std::equal(cut.intensity.begin(), cut.intensity.end(), whole.intensity.begin()));
  }
}

TEST(SpectrumGenerator, TheMostIntenseAreKeptOnDemand) {
  SyntheticOptions options;
  options.most_intense = 6;
  Spectra strong(kRealistic, options);
  Spectra all(kRealistic);
  for (uint64_t i = 0; i < 200; ++i) {
    const Generated whole = all[i];
    const Generated& cut = strong[i];
    std::vector<float> order(whole.intensity);
    std::sort(order.begin(), order.end(), std::greater<>());
    ASSERT_EQ(cut.peaks(), 6U);
    std::vector<float> kept(cut.intensity.begin(), cut.intensity.begin() + 6);
    std::sort(kept.begin(), kept.end(), std::greater<>());
    EXPECT_TRUE(std::equal(kept.begin(), kept.end(), order.begin()));
    EXPECT_TRUE(std::is_sorted(cut.mz.begin(), cut.mz.begin() + 6));
  }
}

TEST(SpectrumGenerator, ScalesToTheBasePeak) {
  SyntheticOptions options;
  options.scale_to_base_peak = true;
  Spectra scaled(kRealistic, options);
  Spectra plain(kRealistic);
  for (uint64_t i = 0; i < 200; ++i) {
    const Generated expected = plain[i];
    const Generated& spectrum = scaled[i];
    const float most = *std::max_element(expected.intensity.begin(), expected.intensity.end());
    EXPECT_EQ(*std::max_element(spectrum.intensity.begin(), spectrum.intensity.end()), 1.0F);
    for (size_t j = 0; j < spectrum.peaks(); ++j)
      EXPECT_FLOAT_EQ(spectrum.intensity[j], expected.intensity[j] / most);
  }
}

TEST(SpectrumGenerator, SpectraFollowFromKeyAndIndexAlone) {
  Spectra forwards(kRealistic);
  Spectra backwards(kRealistic);
  Spectra other(kRealistic, {}, 12);
  std::vector<Generated> spectra;
  for (uint64_t i = 0; i < 50; ++i) spectra.push_back(forwards[i]);
  for (uint64_t i = 50; i-- > 0;) EXPECT_EQ(backwards[i], spectra[i]);
  std::set<std::vector<int32_t>> peptides;
  for (uint64_t i = 0; i < 50; ++i) {
    peptides.insert(spectra[i].targets);
    peptides.insert(other[i].targets);
  }
  EXPECT_EQ(peptides.size(), 100U);
  EXPECT_EQ(forwards[uint64_t{1} << 60], backwards[uint64_t{1} << 60]);
}

TEST(SpectrumGenerator, CorruptionLeavesThePeptideWhatItIs) {
  Spectra clean({.max_length = kRealistic.max_length});
  Spectra corrupted(kRealistic);
  for (uint64_t i = 0; i < 100; ++i) {
    const Generated expected = clean[i];
    EXPECT_EQ(corrupted[i].targets, expected.targets);
    EXPECT_EQ(corrupted[i].precursor_charge, expected.precursor_charge);
  }
}

TEST(SpectrumGenerator, MassesAreOfTheTableAskedFor) {
  SyntheticOptions options;
  options.masses = MassTable::full;
  options.max_peaks = 8;
  Spectra spectra({.min_length = 2, .max_length = 2}, options);
  const ResidueAlphabet full(MassTable::full);
  for (uint64_t i = 0; i < 50; ++i) {
    const Generated& spectrum = spectra[i];
    EXPECT_EQ(spectrum.precursor_mass, static_cast<float>(neutral_mass(full, spectrum.residues())));
  }
}

TEST(SpectrumGenerator, OptionsThatCannotBeAreRefused) {
  const auto message = [](auto change) {
    SyntheticOptions options;
    change(options);
    try {
      check_synthetic_options(options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message([](SyntheticOptions&) {}), "accepted");
  EXPECT_THAT(message([](SyntheticOptions& o) { o.batch_size = 0; }), HasSubstr("batch_size is 0"));
  EXPECT_THAT(message([](SyntheticOptions& o) { o.max_peaks = 0; }), HasSubstr("max_peaks is 0"));
  EXPECT_THAT(message([](SyntheticOptions& o) { o.most_intense = -1; }),
              HasSubstr("most_intense is -1"));
  EXPECT_THAT(message([](SyntheticOptions& o) { o.ion_types.clear(); }),
              HasSubstr("ion_types is empty"));
  EXPECT_THAT(message([](SyntheticOptions& o) {
                o.ion_types = {IonType::b, IonType::b};
              }),
              HasSubstr("ion_types is b twice"));
  EXPECT_THAT(message([](SyntheticOptions& o) { o.charges.clear(); }),
              HasSubstr("sum of all charges"));
  EXPECT_THAT(message([](SyntheticOptions& o) { o.charges = {{0, 1}}; }), HasSubstr("charge is 0"));
  EXPECT_THAT(message([](SyntheticOptions& o) {
                o.charges = {{2, -1}};
              }),
              HasSubstr("share of charge 2 is -1"));
}

}  // namespace
}  // namespace fullbore::peptide
