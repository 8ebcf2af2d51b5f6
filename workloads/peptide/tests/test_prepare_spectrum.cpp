#include "workloads/peptide/prepare_spectrum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/error.h"
#include "workloads/peptide/ions.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;

const ResidueAlphabet& alphabet() {
  static const ResidueAlphabet instance(MassTable::reference, massive_kb_modifications());
  return instance;
}

// A spectrum of the peptide with `peaks` peaks, intensities 1, 2, 3, ... against the order of m/z.
Spectrum spectrum_of(const std::string& sequence, int peaks = 12) {
  Spectrum spectrum;
  spectrum.sequence = sequence;
  spectrum.precursor_charge = 2;
  const PeptideText text = alphabet().read(sequence);
  const double mass = text.ids.empty() ? 800 : neutral_mass(alphabet(), text.ids);
  spectrum.precursor_mz = precursor_mz(mass, 2, alphabet().constants());
  for (int i = 1; i <= peaks; ++i) {
    spectrum.mz.push_back(1000.0 - 10 * i);
    spectrum.intensity.push_back(static_cast<float>(i));
  }
  return spectrum;
}

std::string outcome(const Spectrum& spectrum, const PreparationOptions& options = {}) {
  SpectrumPreparation preparation(options, alphabet());
  PreparedSpectrum prepared;
  const auto reason = preparation.prepare(spectrum, prepared);
  EXPECT_EQ(preparation.counts().read, 1U);
  EXPECT_EQ(preparation.counts().kept, reason ? 0U : 1U);
  if (!reason) return "kept";
  EXPECT_EQ(preparation.counts().dropped[static_cast<size_t>(*reason)], 1U);
  return std::string(drop_reason_name(*reason));
}

TEST(PrepareSpectrum, KeepsTheMostIntenseInOrderOfMz) {
  PreparationOptions options;
  options.max_peaks = 4;
  SpectrumPreparation preparation(options, alphabet());
  PreparedSpectrum prepared;
  ASSERT_FALSE(preparation.prepare(spectrum_of("PEPTIDE"), prepared));
  ASSERT_EQ(prepared.peaks.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(peak_mz(prepared.peaks[i]), 880.0F + 10 * static_cast<float>(i));
    EXPECT_FLOAT_EQ(peak_intensity(prepared.peaks[i]), (12 - static_cast<float>(i)) / 12);
  }
  EXPECT_EQ(prepared.ids, alphabet().ids("PEPTIDE").take_or_throw());
  EXPECT_EQ(prepared.precursor_charge, 2);
  EXPECT_NEAR(prepared.precursor_mass, 799.35994, 1e-5);
}

TEST(PrepareSpectrum, EveryDropHasItsReason) {
  EXPECT_EQ(outcome(spectrum_of("PEPTIDE")), "kept");
  EXPECT_EQ(outcome(spectrum_of("PEPTIDE", 9)), "few_peaks");
  EXPECT_EQ(outcome(spectrum_of("PEPTID")), "short_peptide");
  EXPECT_EQ(outcome(spectrum_of(std::string(31, 'G'))), "long_peptide");
  EXPECT_EQ(outcome(spectrum_of(std::string(30, 'G'))), "kept");
  EXPECT_EQ(outcome(spectrum_of("")), "no_sequence");
  EXPECT_EQ(outcome(spectrum_of("PEPTIDEX")), "unknown_residue");
  EXPECT_EQ(outcome(spectrum_of("PEPTIDE[Phospho]")), "unknown_modification");
  EXPECT_EQ(outcome(spectrum_of("PEP TIDE")), "malformed_sequence");
  Spectrum charged = spectrum_of("PEPTIDE");
  charged.precursor_charge = 7;
  EXPECT_EQ(outcome(charged), "high_charge");
  Spectrum nothing = spectrum_of("PEPTIDE", 0);
  PreparationOptions any;
  any.min_peaks = 0;
  EXPECT_EQ(outcome(nothing, any), "few_peaks");  // without any there is no base peak
  for (size_t reason = 0; reason < kDropReasons; ++reason)
    EXPECT_FALSE(drop_reason_text(static_cast<DropReason>(reason), {}).empty());
}

TEST(PrepareSpectrum, SequencesThatContradictThePrecursorAreDropped) {
  // As if the modifications had been stripped from the sequence.
  Spectrum stripped = spectrum_of("PEPTIDEC+57.021K");
  stripped.sequence = "PEPTIDECK";
  EXPECT_EQ(outcome(stripped), "other_mass");
  EXPECT_EQ(outcome(stripped, {.precursor_ppm = 0}), "kept");
  EXPECT_EQ(outcome(stripped, {.fixed_modifications = {"C+57.021"}}), "kept");
  Spectrum isotope = spectrum_of("PEPTIDE");
  isotope.precursor_mz += 1.00335 / 2;
  EXPECT_EQ(outcome(isotope), "kept");
  EXPECT_EQ(outcome(isotope, {.isotopes = 0}), "other_mass");
  Spectrum shifted = spectrum_of("PEPTIDE");
  shifted.precursor_mz *= 1 + 60e-6;
  EXPECT_EQ(outcome(shifted), "other_mass");
  shifted.precursor_mz *= 1 - 20e-6;
  EXPECT_EQ(outcome(shifted), "kept");
}

TEST(PrepareSpectrum, StatedMassesAreReadAsTheSequenceSays) {
  const double mass = neutral_mass(alphabet(), alphabet().ids("PEPTIDE").take_or_throw());
  const double proton = alphabet().constants().proton;
  for (const double stated : {mass, mass + proton, mass + 2 * proton, mass / 2 + proton}) {
    Spectrum spectrum = spectrum_of("PEPTIDE");
    spectrum.precursor_mz = Spectrum::kUnknown;
    spectrum.stated_mass = stated;
    SpectrumPreparation preparation({}, alphabet());
    PreparedSpectrum prepared;
    EXPECT_FALSE(preparation.prepare(spectrum, prepared));
    EXPECT_NEAR(prepared.precursor_mass, mass, 1e-9);
    spectrum.stated_mass = stated + 30;
    EXPECT_EQ(outcome(spectrum), "other_mass");
    spectrum.sequence.clear();
    EXPECT_EQ(outcome(spectrum, {.needs_sequence = false}), "unclear_mass");
  }
}

TEST(PrepareSpectrum, PredictionNeedsNoSequence) {
  EXPECT_EQ(outcome(spectrum_of(""), {.needs_sequence = false}), "kept");
  EXPECT_EQ(outcome(spectrum_of("X"), {.needs_sequence = false}), "kept");
}

TEST(PrepareSpectrum, PeaksOutOfReachAreLeftOut) {
  const auto count = [](const PreparationOptions& options) {
    SpectrumPreparation preparation(options, alphabet());
    PreparedSpectrum prepared;
    Spectrum spectrum = spectrum_of("PEPTIDE");
    spectrum.mz.push_back(spectrum.precursor_mz + 1.5);
    spectrum.intensity.push_back(100);
    spectrum.mz.push_back(500);
    spectrum.intensity.push_back(0);
    EXPECT_FALSE(preparation.prepare(spectrum, prepared));
    return prepared.peaks.size();
  };
  EXPECT_EQ(count({}), 13U);  // what has no intensity is no peak
  EXPECT_EQ(count({.remove_precursor = 2}), 12U);
  EXPECT_EQ(count({.min_peaks = 1, .min_mz = 950}), 5U);
  EXPECT_EQ(count({.min_peaks = 1, .max_mz = 900}), 4U);
  EXPECT_EQ(count({.min_peaks = 1, .min_intensity = 0.1}), 4U);
}

TEST(PrepareSpectrum, OptionsThatCannotBeAreRefused) {
  const auto message = [](const PreparationOptions& options) {
    try {
      const SpectrumPreparation preparation(options, alphabet());
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({.max_peaks = 0}), HasSubstr("max_peaks is 0"));
  EXPECT_THAT(message({.min_length = 8, .max_length = 7}), HasSubstr("max_length is 7"));
  EXPECT_THAT(message({.min_intensity = 2}), HasSubstr("min_intensity is 2"));
  EXPECT_THAT(message({.fixed_modifications = {"C"}}), HasSubstr("fixed modification 'C'"));
  EXPECT_THAT(message({.fixed_modifications = {"K+8"}}), HasSubstr("fixed modification 'K+8'"));
  EXPECT_THAT(message({.fixed_modifications = {"+42.011"}}), HasSubstr("none of the alphabet's"));
}

}  // namespace
}  // namespace fullbore::peptide
