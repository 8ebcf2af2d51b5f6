#include "workloads/peptide/curriculum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/error.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;

TEST(Curriculum, StagesChangeAtTheirSteps) {
  const Curriculum curriculum = default_curriculum();
  constexpr uint64_t kSteps[] = {0, 7999, 8000, 16000, 22000, 28000, 38000, 60000};
  constexpr size_t kStages[] = {0, 0, 1, 2, 3, 4, 5, 5};
  for (size_t i = 0; i < std::size(kSteps); ++i)
    EXPECT_EQ(stage_at(curriculum, kSteps[i]), kStages[i]) << kSteps[i];
  for (const uint64_t boundary : {16000, 22000, 28000, 38000})
    EXPECT_EQ(stage_at(curriculum, boundary - 1) + 1, stage_at(curriculum, boundary));
}

TEST(Curriculum, DefaultIsTheTable) {
  const Curriculum curriculum = default_curriculum();
  ASSERT_EQ(curriculum.size(), 6U);
  check_curriculum(curriculum);
  constexpr int kLength[] = {10, 10, 12, 12, 15, 18};
  constexpr int kNoise[] = {0, 0, 1, 2, 5, 8};
  constexpr double kDropout[] = {0, 0, .02, .05, .10, .15};
  constexpr double kPpm[] = {0, 0, 2, 5, 10, 15};
  constexpr double kVariation[] = {0, 0, 0, 0, 0, .2};
  constexpr double kWeight[] = {0, .10, .10, .12, .15, .15};
  for (size_t i = 0; i < 6; ++i) {
    const SpectrumSettings& spectra = curriculum[i].spectra;
    EXPECT_EQ(spectra.min_length, 7);
    EXPECT_EQ(spectra.max_length, kLength[i]);
    EXPECT_EQ(spectra.noise_peaks, kNoise[i]);
    EXPECT_EQ(spectra.peak_dropout, kDropout[i]);
    EXPECT_EQ(spectra.mass_error_ppm, kPpm[i]);
    EXPECT_EQ(spectra.intensity_variation, kVariation[i]);
    EXPECT_EQ(curriculum[i].spectrum_weight, kWeight[i]);
  }
}

TEST(Curriculum, LateVariantHasTenStages) {
  const Curriculum curriculum = late_curriculum();
  ASSERT_EQ(curriculum.size(), 10U);
  check_curriculum(curriculum);
  EXPECT_EQ(stage_at(curriculum, 9999), 0U);
  EXPECT_EQ(stage_at(curriculum, 10000), 1U);
  EXPECT_EQ(stage_at(curriculum, 99999), 9U);
  EXPECT_EQ(stage_at(curriculum, 1000000), 9U);
  EXPECT_EQ(curriculum[4].spectra.mass_error_ppm, 7.5);
  EXPECT_EQ(curriculum[7].spectra.intensity_variation, 0.1);
  EXPECT_EQ(curriculum[9].spectra.noise_peaks, 10);
  EXPECT_EQ(curriculum[9].spectra.max_length, 18);
  EXPECT_EQ(curriculum[9].spectrum_weight, 0.15);
  EXPECT_TRUE(named_curriculum("late").has_value());
  EXPECT_EQ(named_curriculum("default")->size(), 6U);
  EXPECT_FALSE(named_curriculum("none").has_value());
}

TEST(Curriculum, RefusesWhatCannotBeFollowed) {
  const auto message = [](auto change) {
    Curriculum curriculum = default_curriculum();
    change(curriculum);
    try {
      check_curriculum(curriculum);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message([](Curriculum& c) { c.clear(); }), HasSubstr("at least one stage"));
  EXPECT_THAT(message([](Curriculum& c) { c[0].first_step = 1; }),
              HasSubstr("stage 'warm-up': first_step is 1, expected 0"));
  EXPECT_THAT(message([](Curriculum& c) { c[2].first_step = 8000; }),
              HasSubstr("stage 'gentle noise': first_step is 8000, expected more than the 8000"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.min_length = 1; }),
              HasSubstr("min_length is 1"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.max_length = 6; }),
              HasSubstr("max_length is 6"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.noise_peaks = -1; }),
              HasSubstr("noise_peaks is -1"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.peak_dropout = 1.5; }),
              HasSubstr("peak_dropout is 1.5, expected a probability"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.mass_error_ppm = 1e6; }),
              HasSubstr("mass_error_ppm"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.clean_data_ratio = -0.1; }),
              HasSubstr("clean_data_ratio"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectra.high_noise_share = 2; }),
              HasSubstr("high_noise_share"));
  EXPECT_THAT(message([](Curriculum& c) { c[1].spectrum_weight = -1; }),
              HasSubstr("spectrum_weight is -1"));
}

}  // namespace
}  // namespace fullbore::peptide
