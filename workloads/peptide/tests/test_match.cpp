#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fullbore/base/philox.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/match.h"

namespace fullbore::peptide {
namespace {

const ResidueAlphabet kAlphabet;

std::vector<int32_t> ids(const std::string& text) {
  std::vector<int32_t> found;
  for (const char letter : text) found.push_back(residue_id(letter));
  return found;
}

std::string matches(const std::string& predicted, const std::string& truth) {
  std::string digits;
  for (const bool match : match_residues(residue_masses(ids(predicted), kAlphabet),
                                         residue_masses(ids(truth), kAlphabet)))
    digits += match ? '1' : '0';
  return digits;
}

TEST(Match, VectorsOfTheSpecification) {
  EXPECT_EQ(matches("PEPTIDE", "PEPTLDE"), "1111111");
  EXPECT_EQ(matches("LESLIEK", "LESLIEQ"), "1111111");
  EXPECT_EQ(matches("ACDEFGHIK", "CADEFGHIK"), "001111111");
  EXPECT_EQ(matches("ANK", "AGGK"), "1001");
  EXPECT_EQ(matches("SAMPLER", "SAMPLE"), "1111110");
  EXPECT_EQ(matches("WIFFGFSTR", "WIFFGFTSR"), "111111001");
  EXPECT_EQ(matches("PEPTIDE", "EDITPEP"), "0000000");
}

TEST(Match, TheSuffixIsFoundBehindAWrongMass) {
  // A residue of another mass shifts every prefix behind it; from the C-terminus the rest matches.
  EXPECT_EQ(matches("WEPTIDE", "GEPTIDE"), "0111111");
  EXPECT_EQ(matches("PEPWIDE", "PEPGIDE"), "1110111");
  EXPECT_EQ(matches("PEPTIDEAA", "PEPTIDE"), "111111100");
  EXPECT_EQ(matches("AAPEPTIDE", "PEPTIDE"), "001111111");
}

TEST(Match, NothingPredicted) {
  EXPECT_EQ(matches("", "GAG"), "000");
  EXPECT_EQ(matches("", ""), "");
}

TEST(Match, TolerancesAreOpenIntervals) {
  const double base[] = {100.0};
  const double at[] = {100.0 + 0.125};
  EXPECT_EQ(match_residues(base, at, {0.5, 0.125}), std::vector<bool>{false});
  EXPECT_EQ(match_residues(base, at, {0.5, 0.126}), std::vector<bool>{true});
  EXPECT_EQ(match_residues(base, at, {0.125, 0.2}), std::vector<bool>{false});
}

std::vector<int32_t> random_peptide(PhiloxStream& draws, uint64_t most) {
  std::vector<int32_t> found(1 + draws.below(most));
  for (int32_t& id : found) id = kFirstResidue + static_cast<int32_t>(draws.below(kResidues));
  return found;
}

TEST(Match, PropertiesOfRandomPeptides) {
  PhiloxStream draws(5);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<double> a = residue_masses(random_peptide(draws, 12), kAlphabet);
    std::vector<double> b = residue_masses(random_peptide(draws, 12), kAlphabet);
    if (i % 2 == 0) {  // relatives: a part of the other
      b = a;
      b.resize(1 + draws.below(a.size()));
    }
    const std::vector<bool> found = match_residues(a, b);
    ASSERT_EQ(found.size(), std::max(a.size(), b.size()));
    EXPECT_EQ(found, match_residues(b, a)) << "which is which does not matter";
    const auto count = static_cast<size_t>(std::count(found.begin(), found.end(), true));
    EXPECT_LE(count, std::min(a.size(), b.size())) << "a residue matches once";
    const std::vector<bool> self = match_residues(a, a);
    EXPECT_TRUE(std::all_of(self.begin(), self.end(), [](bool match) { return match; }));
    if (i % 2 == 0) {
      EXPECT_EQ(count, b.size()) << "a prefix matches whole";
    }
  }
}

TEST(Match, DecodingEndsAtTheEndOrTheMask) {
  const std::vector<int32_t> row{kStart, 4, 5, kPad, 6, kEnd, 7};
  EXPECT_EQ(decoded_ids(row), (std::vector<int32_t>{4, 5, 6}));
  const std::vector<uint8_t> mask{1, 1, 1, 0, 1, 1, 1};
  EXPECT_EQ(decoded_ids(row, mask), (std::vector<int32_t>{4, 5}));
}

TEST(Match, MassErrorInPartsPerMillion) {
  const double error = mass_error_ppm(neutral_mass(kAlphabet, ids("LESLIEQ")),
                                      neutral_mass(kAlphabet, ids("LESLIEK")));
  EXPECT_NEAR(error, -43.806, 5e-4);
}

TEST(Match, PrecursorToleranceKnowsIsotopes) {
  const double mass = 1000;
  EXPECT_TRUE(is_within({50, 0, 1}, mass, mass + 0.05));
  EXPECT_FALSE(is_within({50, 0, 1}, mass, mass + 0.0502));
  EXPECT_FALSE(is_within({50, 0, 1}, mass, mass - 0.0501));
  EXPECT_TRUE(is_within({50, 0, 1}, mass, mass + kIsotopeSpacing - 0.04));
  EXPECT_FALSE(is_within({50, 0, 0}, mass, mass + kIsotopeSpacing));
  EXPECT_FALSE(is_within({50, 0, 1}, mass, mass - kIsotopeSpacing));
  EXPECT_TRUE(is_within({50, -1, 1}, mass, mass - kIsotopeSpacing));
  EXPECT_FALSE(is_within({50, 0, 1}, mass, mass + 2 * kIsotopeSpacing));
}

TEST(Match, EqualButForLeucine) {
  EXPECT_TRUE(are_equal(ids("PEPTIDE"), ids("PEPTLDE"), true));
  EXPECT_FALSE(are_equal(ids("PEPTIDE"), ids("PEPTLDE"), false));
  EXPECT_FALSE(are_equal(ids("LESLIEK"), ids("LESLIEQ"), true)) << "alike in mass alone";
  EXPECT_FALSE(are_equal(ids("SAMPLE"), ids("SAMPLER"), true));
}

}  // namespace
}  // namespace fullbore::peptide
