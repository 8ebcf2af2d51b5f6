#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fullbore/base/philox.h"
#include "workloads/peptide/slot_scores.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;

const ResidueAlphabet kAlphabet;

/// "^PEPTIDE$..": ^ starts, $ ends, . pads.
std::vector<int32_t> slots(const std::string& text) {
  std::vector<int32_t> found;
  for (const char letter : text)
    found.push_back(letter == '^'   ? kStart
                    : letter == '$' ? kEnd
                    : letter == '.' ? kPad
                                    : residue_id(letter));
  return found;
}

std::vector<uint8_t> mask_of(const std::vector<int32_t>& targets) {
  std::vector<uint8_t> mask;
  for (const int32_t id : targets) mask.push_back(id == kPad ? 0 : 1);
  return mask;
}

void add(SlotScorer& scorer, const std::string& answers, const std::string& target,
         double precursor_mass = kNoValue) {
  const std::vector<int32_t> given = slots(answers);
  const std::vector<int32_t> targets = slots(target);
  const std::vector<uint8_t> mask = mask_of(targets);
  scorer.add({given, targets, mask, precursor_mass});
}

TEST(SlotScores, CountsEndsButNoPadding) {
  SlotScorer scorer(kAlphabet);
  add(scorer, "^GLK$AA", "^GIK$..");
  add(scorer, "^GAK$..", "^GAK$..");
  const SlotReport report = scorer.report();
  EXPECT_EQ(report.all.slots, 10);
  EXPECT_DOUBLE_EQ(report.all.token_accuracy(), 0.9);
  EXPECT_DOUBLE_EQ(report.all.token_accuracy_but_leucine(), 1);
  EXPECT_DOUBLE_EQ(report.all.sequence_accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(report.all.sequence_accuracy_but_leucine(), 1);
  EXPECT_EQ(report.steps.size(), 1U);
  EXPECT_EQ(report.steps[0].flipped, 0);
}

TEST(SlotScores, StepsAreComparedWithTheOneBefore) {
  SlotScorer scorer(kAlphabet);
  //               A wrong -> K right; G right -> W wrong; the last slot flips between wrong ones and is padding.
  add(scorer,
      "^GAK$A"
      "^GKK$L"
      "^WKA$W",
      "^GKK$.");
  const SlotReport report = scorer.report();
  ASSERT_EQ(report.steps.size(), 3U);
  EXPECT_DOUBLE_EQ(report.steps[0].accuracy(), 0.8);
  EXPECT_DOUBLE_EQ(report.steps[1].accuracy(), 1);
  EXPECT_DOUBLE_EQ(report.steps[2].accuracy(), 0.6);
  EXPECT_DOUBLE_EQ(report.steps[1].flip_rate(), 0.2);
  EXPECT_DOUBLE_EQ(report.steps[1].edit_quality(), 1);
  EXPECT_DOUBLE_EQ(report.steps[2].flip_rate(), 0.4);
  EXPECT_DOUBLE_EQ(report.steps[2].edit_quality(), -1);
  EXPECT_DOUBLE_EQ(report.all.token_accuracy(), report.steps[2].accuracy());
}

TEST(SlotScores, MassErrorOfWhatDecodes) {
  SlotScorer scorer(kAlphabet);
  const double gg = 132.05348;
  add(scorer, "^GG$..", "^GG$..", gg / (1 + 10e-6));  // the measured one is 10 ppm lighter
  add(scorer, "^$GG..", "^GG$..", gg);                // nothing decodes: no error
  add(scorer, "^GGA$.", "^GG$..",
      gg);  // ends at the first unmasked slot: GG and A, which EOS's slot holds
  const SlotReport report = scorer.report();
  EXPECT_EQ(report.mass_errors, 2);
  EXPECT_NEAR(scorer.outcomes()[0].absolute_mass_error_ppm, 10, 1e-6);
  EXPECT_TRUE(std::isnan(scorer.outcomes()[1].absolute_mass_error_ppm));
  EXPECT_NEAR(scorer.outcomes()[2].absolute_mass_error_ppm, 71.03711 / gg * 1e6, 1e-6);
  EXPECT_NEAR(report.mean_mass_error_ppm, (10 + 71.03711 / gg * 1e6) / 2, 1e-6);
}

TEST(SlotScores, BareTargetsAndLengths) {
  SlotScorer scorer(kAlphabet);
  add(scorer, "GGGGGGGGGGGGGG", "GGGGGGGGGGGGG.");
  add(scorer, "GGGGGGGGGGGGGG", "GGGGGGGGGGGG..");
  const SlotReport report = scorer.report();
  EXPECT_EQ(report.by_length[0].slots, 12);
  EXPECT_EQ(report.by_length[1].slots, 13);
  EXPECT_EQ(report.all.equal, 2);
}

TEST(SlotScores, FlipsAreImprovementsRegressionsAndWrongToWrong) {
  PhiloxStream draws(9);
  SlotScorer scorer(kAlphabet);
  for (int i = 0; i < 300; ++i) {
    std::vector<int32_t> answers(4 * 6);
    std::vector<int32_t> targets(6);
    for (int32_t& id : answers) id = static_cast<int32_t>(draws.below(4)) + kFirstResidue;
    for (int32_t& id : targets) id = static_cast<int32_t>(draws.below(4)) + kFirstResidue;
    const std::vector<uint8_t> mask{1, 1, 1, 1, static_cast<uint8_t>(draws.below(2)), 0};
    scorer.add({answers, targets, mask, kNoValue});
  }
  const SlotReport report = scorer.report();
  for (size_t step = 1; step < report.steps.size(); ++step) {
    const StepCounts& counts = report.steps[step];
    EXPECT_EQ(counts.correct - report.steps[step - 1].correct, counts.improved - counts.regressed);
    EXPECT_LE(counts.improved + counts.regressed, counts.flipped);
    EXPECT_GT(counts.flipped, 0);
  }
}

TEST(SlotScores, JsonAndText) {
  SlotScorer scorer(kAlphabet);
  add(scorer, "^GLK$.^GIK$.", "^GIK$.");
  const nlohmann::ordered_json json = to_json(scorer.report());
  EXPECT_EQ(json["steps"].size(), 2U);
  EXPECT_DOUBLE_EQ(json["steps"][1]["flip_rate"].get<double>(), 0.2);
  EXPECT_TRUE(json["mean_mass_error_ppm"].is_null());
  EXPECT_THAT(text(scorer.report()), HasSubstr("100.00 %"));
}

}  // namespace
}  // namespace fullbore::peptide
