#include "workloads/peptide/paired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/philox.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;

PeptideOutcome outcome(bool is_right, double confidence = 0.5) {
  PeptideOutcome found;
  found.predicted_residues = found.true_residues = 10;
  found.matched_residues = is_right ? 10 : 4;
  found.is_predicted = true;
  found.is_matched = found.is_equal = found.is_equal_but_leucine = is_right;
  found.confidence = confidence;
  found.mass_error_ppm = is_right ? -1 : 21;
  return found;
}

/// Right with this probability, by draws that depend on the spectrum: pairs are alike.
std::vector<PeptideOutcome> outcomes(size_t count, double probability, uint64_t key,
                                     double likeness = 0.9) {
  PhiloxStream spectra(17);
  PhiloxStream own(key);
  std::vector<PeptideOutcome> found;
  for (size_t i = 0; i < count; ++i) {
    const double hardness = spectra.uniform();
    const double draw = own.uniform() < likeness ? hardness : own.uniform();
    found.push_back(outcome(draw < probability, own.uniform()));
  }
  return found;
}

const PairedMeasure& measure(const PairedReport& report, const std::string& name) {
  for (const PairedMeasure& found : report.measures)
    if (found.name == name) return found;
  throw std::out_of_range(name);
}

TEST(Paired, McNemarIsTheBinomialTail) {
  EXPECT_DOUBLE_EQ(mcnemar_exact(0, 0), 1);
  EXPECT_DOUBLE_EQ(mcnemar_exact(5, 5), 1);
  EXPECT_NEAR(mcnemar_exact(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(mcnemar_exact(1, 9), 2 * 11.0 / 1024, 1e-12);
  EXPECT_NEAR(mcnemar_exact(9, 1), mcnemar_exact(1, 9), 1e-15);
  EXPECT_NEAR(mcnemar_exact(1000, 1100), 0.0308,
              5e-4);  // the normal approximation, with correction
  EXPECT_GT(mcnemar_exact(2000, 2001), 0.98);
}

TEST(Paired, TheSameSideTwiceDiffersInNothing) {
  const std::vector<PeptideOutcome> a = outcomes(200, 0.6, 1);
  const PairedReport report = compare_peptides(a, a, {.replicates = 50});
  EXPECT_EQ(report.measures.size(), 6U);
  for (const PairedMeasure& found : report.measures) {
    EXPECT_EQ(found.difference, 0) << found.name;
    EXPECT_EQ(found.interval.low, 0) << found.name;
    EXPECT_EQ(found.interval.high, 0) << found.name;
  }
  EXPECT_EQ(measure(report, "peptide_precision").mcnemar_p, 1);
}

TEST(Paired, FiguresAreThoseOfTheReports) {
  const std::vector<PeptideOutcome> a = outcomes(300, 0.6, 1);
  const std::vector<PeptideOutcome> b = outcomes(300, 0.7, 2);
  const PairedReport report = compare_peptides(a, b, {.replicates = 10});
  const PeptideReport alone = report_peptides(b);
  EXPECT_DOUBLE_EQ(measure(report, "aa_precision").b, alone.all.residue_precision());
  EXPECT_DOUBLE_EQ(measure(report, "aa_recall").b, alone.all.residue_recall());
  EXPECT_DOUBLE_EQ(measure(report, "peptide_precision").b, alone.all.peptide_precision());
  EXPECT_NEAR(measure(report, "aupc").b, *alone.area, 1e-12);
  EXPECT_DOUBLE_EQ(measure(report, "mass_error").b, alone.mean_absolute_ppm);
  EXPECT_DOUBLE_EQ(measure(report, "mass_error").a, report_peptides(a).mean_absolute_ppm);
}

TEST(Paired, TiedConfidencesHaveTheAreaOfTheReport) {
  std::vector<PeptideOutcome> a = outcomes(300, 0.6, 1);
  PhiloxStream draws(2);
  for (PeptideOutcome& found : a) found.confidence = static_cast<double>(draws.below(5));
  a[7] = PeptideOutcome();  // nothing predicted: the last of all
  a[7].true_residues = 10;
  const PairedReport report = compare_peptides(a, a, {.replicates = 1});
  EXPECT_NEAR(measure(report, "aupc").a, *report_peptides(a).area, 1e-12);
}

TEST(Paired, PairingNarrowsTheInterval) {
  const auto width = [](double likeness) {
    const PairedReport report = compare_peptides(
        outcomes(2000, 0.6, 1, likeness), outcomes(2000, 0.6, 2, likeness), {.replicates = 300});
    const Interval& interval = measure(report, "peptide_precision").interval;
    return interval.high - interval.low;
  };
  EXPECT_LT(width(0.95), 0.6 * width(0));
}

// Of many comparisons of equals, about one in twenty excludes 0: between 1 and 15 of 100 but for one
// set of draws in a thousand.
TEST(Paired, TheIntervalCoversAsOftenAsItSays) {
  int excluded = 0;
  for (uint64_t key = 0; key < 100; ++key) {
    const PairedReport report =
        compare_peptides(outcomes(150, 0.5, 2 * key + 10, 0.5),
                         outcomes(150, 0.5, 2 * key + 11, 0.5), {.replicates = 200, .key = key});
    const Interval& interval = measure(report, "peptide_precision").interval;
    excluded += interval.low > 0 || interval.high < 0 ? 1 : 0;
  }
  EXPECT_GE(excluded, 1);
  EXPECT_LE(excluded, 15);
}

TEST(Paired, ARealDifferenceIsSeen) {
  const PairedReport report =
      compare_peptides(outcomes(2000, 0.55, 1), outcomes(2000, 0.65, 2), {.replicates = 200});
  const PairedMeasure& found = measure(report, "peptide_precision");
  EXPECT_GT(found.interval.low, 0);
  EXPECT_LT(*found.mcnemar_p, 1e-6);
  EXPECT_GT(found.only_b, found.only_a);
  EXPECT_NEAR(found.difference, static_cast<double>(found.only_b - found.only_a) / 2000, 1e-12);
}

TEST(Paired, TheSameKeyGivesTheSameIntervals) {
  const std::vector<PeptideOutcome> a = outcomes(100, 0.5, 1);
  const std::vector<PeptideOutcome> b = outcomes(100, 0.5, 2);
  const auto json = [&](uint64_t key) {
    return to_json(compare_peptides(a, b, {.replicates = 20, .key = key}))["measures"].dump();
  };
  EXPECT_EQ(json(4), json(4));
  EXPECT_NE(json(4), json(5));
}

TEST(Paired, WithoutConfidencesThereIsNoArea) {
  std::vector<PeptideOutcome> a = outcomes(20, 0.5, 1);
  const std::vector<PeptideOutcome> b = a;
  a[3].confidence = kNoValue;
  EXPECT_THROW(measure(compare_peptides(a, b, {.replicates = 5}), "aupc"), std::out_of_range);
}

TEST(Paired, Slots) {
  std::vector<SlotOutcome> a(4, {.slots = 10,
                                 .correct = 9,
                                 .correct_but_leucine = 10,
                                 .is_equal_but_leucine = true,
                                 .absolute_mass_error_ppm = 2});
  std::vector<SlotOutcome> b(4, {.slots = 10,
                                 .correct = 10,
                                 .correct_but_leucine = 10,
                                 .is_equal = true,
                                 .is_equal_but_leucine = true});
  const PairedReport report = compare_slots(a, b, {.replicates = 20});
  EXPECT_NEAR(measure(report, "token_accuracy").difference, 0.1, 1e-12);
  EXPECT_EQ(measure(report, "token_accuracy_i_as_l").difference, 0);
  EXPECT_EQ(measure(report, "sequence_accuracy").only_b, 4);
  EXPECT_NEAR(*measure(report, "sequence_accuracy").mcnemar_p, 0.125, 1e-12);
  EXPECT_THROW(measure(report, "mass_error"), std::out_of_range) << "B has none";
  EXPECT_THAT(text(report), HasSubstr("0 : 4, p = 0.125"));
  EXPECT_THAT(text(report), HasSubstr("+10.000"));
}

TEST(Paired, NoSpectra) {
  const PairedReport report = compare_peptides({}, {}, {.replicates = 5});
  EXPECT_EQ(report.spectra, 0);
  EXPECT_EQ(measure(report, "aa_recall").interval.high, 0);
  EXPECT_THAT(text(report), HasSubstr("0 spectra"));
}

}  // namespace
}  // namespace fullbore::peptide
