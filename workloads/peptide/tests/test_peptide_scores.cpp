#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fullbore/base/philox.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/peptide_scores.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;

const ResidueAlphabet kAlphabet;

std::vector<int32_t> ids(const std::string& text) {
  std::vector<int32_t> found;
  for (const char letter : text) found.push_back(residue_id(letter));
  return found;
}

struct Row {
  std::string predicted;
  std::string truth;
  double confidence;
};
// The eight pairs of the specification, with its confidences.
const Row kRows[] = {{"PEPTIDE", "PEPTLDE", .90},     {"LESLIEK", "LESLIEQ", .80},
                     {"ACDEFGHIK", "CADEFGHIK", .70}, {"ANK", "AGGK", .60},
                     {"SAMPLER", "SAMPLE", .50},      {"WIFFGFSTR", "WIFFGFTSR", .85},
                     {"PEPTIDE", "EDITPEP", .10},     {"PEPTIDE", "PEPTIDE", .95}};

PeptideScorer scored(bool has_confidence = true) {
  PeptideScorer scorer(kAlphabet);
  for (const Row& row : kRows) {
    const std::vector<int32_t> predicted = ids(row.predicted);
    const std::vector<int32_t> truth = ids(row.truth);
    scorer.add({predicted, truth, has_confidence ? row.confidence : kNoValue,
                neutral_mass(kAlphabet, truth)});
  }
  return scorer;
}

TEST(PeptideScores, VectorsOfTheSpecification) {
  const PeptideReport report = scored().report();
  EXPECT_EQ(report.all.matched_residues, 43);
  EXPECT_EQ(report.all.predicted_residues, 56);
  EXPECT_EQ(report.all.true_residues, 56);
  EXPECT_DOUBLE_EQ(report.all.residue_precision(), 43.0 / 56);
  EXPECT_DOUBLE_EQ(report.all.residue_recall(), 43.0 / 56);
  EXPECT_DOUBLE_EQ(report.all.peptide_precision(), 3.0 / 8);
  ASSERT_TRUE(report.area);
  EXPECT_NEAR(*report.area, 0.5790923, 5e-8);
  EXPECT_EQ(report.all.equal, 1);
  EXPECT_EQ(report.all.equal_but_leucine, 2);
}

TEST(PeptideScores, MassesAgainstThePrecursor) {
  const PeptideReport report = scored().report();
  EXPECT_EQ(report.mass_errors, 8);
  // LESLIEK on LESLIEQ 43.804 ppm, N for GG 1e-5 Da, SAMPLER 156.1 Da too heavy; the others 0.
  EXPECT_EQ(report.within_precursor, 7);
  EXPECT_EQ(report.matched_within_precursor, 3);
  EXPECT_NEAR(report.median_absolute_ppm, 0, 1e-9);
  const double sampler = mass_error_ppm(neutral_mass(kAlphabet, ids("SAMPLER")),
                                        neutral_mass(kAlphabet, ids("SAMPLE")));
  const double leslie = 0.03638 / neutral_mass(kAlphabet, ids("LESLIEQ")) * 1e6;
  const double gg = 1e-5 / neutral_mass(kAlphabet, ids("AGGK")) * 1e6;
  EXPECT_NEAR(report.mean_absolute_ppm, (sampler + leslie + gg) / 8, 1e-6);
}

TEST(PeptideScores, WithoutPredictionASpectrumCountsAsWrong) {
  PeptideScorer scorer(kAlphabet);
  const std::vector<int32_t> truth = ids("PEPTIDE");
  scorer.add({truth, truth, 0.5, kNoValue});
  scorer.add({{}, truth, kNoValue, 800});
  const PeptideReport report = scorer.report();
  EXPECT_EQ(report.all.spectra, 2);
  EXPECT_EQ(report.all.predicted, 1);
  EXPECT_DOUBLE_EQ(report.all.residue_precision(), 1);
  EXPECT_DOUBLE_EQ(report.all.residue_recall(), 0.5);
  EXPECT_DOUBLE_EQ(report.all.peptide_precision(), 0.5);
  EXPECT_EQ(report.mass_errors, 0);
  ASSERT_EQ(report.curve.size(), 2U);
  EXPECT_DOUBLE_EQ(report.curve[0].precision, 1);
  EXPECT_DOUBLE_EQ(report.curve[1].precision, 0.5);
}

TEST(PeptideScores, WithoutConfidencesThereIsNoCurve) {
  const PeptideReport report = scored(/*has_confidence=*/false).report();
  EXPECT_FALSE(report.area);
  EXPECT_TRUE(report.curve.empty());
  EXPECT_THAT(text(report), HasSubstr("no confidences"));
  EXPECT_TRUE(to_json(report)["aupc"].is_null());
}

TEST(PeptideScores, LengthBuckets) {
  EXPECT_EQ(length_bucket(12), 0U);
  EXPECT_EQ(length_bucket(13), 1U);
  EXPECT_EQ(length_bucket(17), 1U);
  EXPECT_EQ(length_bucket(18), 2U);
  PeptideScorer scorer(kAlphabet);
  for (const size_t residues : {12, 13, 18, 40}) {
    const std::vector<int32_t> truth(residues, residue_id('G'));
    const std::vector<int32_t> predicted(residues, residue_id(residues == 13 ? 'W' : 'G'));
    scorer.add({predicted, truth, 1, kNoValue});
  }
  const PeptideReport report = scorer.report();
  EXPECT_EQ(report.by_length[0].matched, 1);
  EXPECT_EQ(report.by_length[1].spectra, 1);
  EXPECT_EQ(report.by_length[1].matched, 0);
  EXPECT_EQ(report.by_length[2].matched_residues, 58);
}

TEST(PeptideScores, NoSpectraGiveNoNumbersThatAreNone) {
  const PeptideReport report = PeptideScorer(kAlphabet).report();
  EXPECT_EQ(report.all.peptide_precision(), 0);
  EXPECT_EQ(to_json(report)["mass_error_ppm"]["mean_absolute"], nullptr);
  EXPECT_THAT(text(report), HasSubstr("0, 0 with a prediction"));
}

TEST(PeptideScores, JsonAndTextHaveTheFigures) {
  const PeptideReport report = scored().report();
  const nlohmann::ordered_json json = to_json(report, 4);
  EXPECT_DOUBLE_EQ(json["aa_precision"].get<double>(), 43.0 / 56);
  EXPECT_EQ(json["by_length"]["up to 12"]["spectra"], 8);
  ASSERT_EQ(json["curve"].size(), 4U);
  EXPECT_DOUBLE_EQ(json["curve"][3]["precision"].get<double>(), 3.0 / 8);
  EXPECT_DOUBLE_EQ(json["curve"][3]["coverage"].get<double>(), 1);
  EXPECT_THAT(text(report), HasSubstr("76.79 %  (43 of 56)"));
  EXPECT_THAT(text(report), HasSubstr("0.5791"));
  EXPECT_THAT(text(report), HasSubstr("50 ppm, isotopes 0 to 1"));
}

TEST(PrecisionCurve, OrderOfAFileIsNothingToIt) {
  PhiloxStream draws(3);
  std::vector<RankedPrediction> predictions(200);
  for (RankedPrediction& prediction : predictions)  // many of one confidence
    prediction = {static_cast<double>(draws.below(10)), draws.below(3) == 0};
  const double area = area_under_curve(precision_coverage_curve(predictions));
  for (int i = 0; i < 20; ++i) {
    for (size_t at = predictions.size(); at > 1; --at)
      std::swap(predictions[at - 1], predictions[draws.below(at)]);
    const std::vector<CurvePoint> curve = precision_coverage_curve(predictions);
    EXPECT_NEAR(area_under_curve(curve), area, 1e-12);
    EXPECT_TRUE(std::is_sorted(curve.begin(), curve.end(), [](const auto& a, const auto& b) {
      return a.coverage < b.coverage;
    }));
  }
}

TEST(PrecisionCurve, TiesAreTheMeanOverTheirOrders) {
  std::vector<RankedPrediction> tied(4);
  const bool correct[] = {true, false, false, true};
  for (size_t i = 0; i < 4; ++i) tied[i] = {0.5, correct[i]};
  std::vector<size_t> order(4);
  std::iota(order.begin(), order.end(), size_t{0});
  double sum = 0;
  int orders = 0;
  do {
    std::vector<RankedPrediction> distinct(4);
    for (size_t i = 0; i < 4; ++i) distinct[i] = {-static_cast<double>(i), correct[order[i]]};
    sum += area_under_curve(precision_coverage_curve(distinct));
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(area_under_curve(precision_coverage_curve(tied)), sum / orders, 1e-12);
}

TEST(PrecisionCurve, CoverageAtAPrecision) {
  const std::vector<CurvePoint> curve = scored().report().curve;
  const std::optional<CurvePoint> point = coverage_at_precision(curve, 0.75);
  ASSERT_TRUE(point);
  EXPECT_DOUBLE_EQ(point->coverage, 0.5);
  EXPECT_DOUBLE_EQ(point->confidence, 0.8);
  EXPECT_FALSE(coverage_at_precision({}, 0.5));
}

}  // namespace
}  // namespace fullbore::peptide
