#include "workloads/peptide/residues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/base/error.h"
#include "workloads/peptide/modifications.h"

namespace fullbore::peptide {
namespace {

using ::testing::HasSubstr;
using Problem = PeptideText::Problem;

// Both tables of the specification, by letter.
struct Row {
  char letter;
  double reference;
  double full;
};
constexpr Row kTable[] = {
    {'A', 71.03711, 71.03711379},   {'R', 156.10111, 156.10111102}, {'N', 114.04293, 114.04292744},
    {'D', 115.02694, 115.02694302}, {'C', 103.00919, 103.00918496}, {'E', 129.04259, 129.04259309},
    {'Q', 128.05858, 128.05857751}, {'G', 57.02146, 57.02146372},   {'H', 137.05891, 137.05891186},
    {'I', 113.08406, 113.08406398}, {'L', 113.08406, 113.08406398}, {'K', 128.09496, 128.09496302},
    {'M', 131.04049, 131.04048509}, {'F', 147.06841, 147.06841391}, {'P', 97.05276, 97.05276385},
    {'S', 87.03203, 87.03202840},   {'T', 101.04768, 101.04767847}, {'W', 186.07931, 186.07931295},
    {'Y', 163.06333, 163.06332853}, {'V', 99.06841, 99.06841391}};

TEST(Residues, HaveIdsAndMassesOfTheTables) {
  const ResidueAlphabet reference;
  const ResidueAlphabet full(MassTable::full);
  EXPECT_EQ(reference.size(), 24);
  int32_t id = kFirstResidue;
  for (const Row& row : kTable) {
    EXPECT_EQ(residue_id(row.letter), id);
    EXPECT_EQ(reference.name(id), std::string(1, row.letter));
    EXPECT_DOUBLE_EQ(reference.mass(id), row.reference) << row.letter;
    EXPECT_NEAR(full.mass(id), row.full, 5.1e-9) << row.letter;
    EXPECT_NEAR(full.mass(id), reference.mass(id), 5.1e-6) << row.letter;
    ++id;
  }
  for (int32_t special = kPad; special <= kUnknown; ++special) {
    EXPECT_EQ(reference.mass(special), 0);
    EXPECT_FALSE(reference.is_residue(special));
    EXPECT_FALSE(reference.is_terminal(special));
  }
}

TEST(Residues, ConstantsAreThoseOfTheTables) {
  const MassConstants& reference = mass_constants(MassTable::reference);
  EXPECT_EQ(reference.water, 18.01056);
  EXPECT_EQ(reference.ammonia, 17.02655);
  EXPECT_EQ(reference.carbon_monoxide, 27.99491);
  EXPECT_EQ(reference.proton, 1.00727);
  const MassConstants& full = mass_constants(MassTable::full);
  EXPECT_NEAR(full.water, 18.010564684, 1e-9);
  EXPECT_NEAR(full.ammonia, 17.026549101, 1e-9);
  EXPECT_NEAR(full.carbon_monoxide, 27.994914620, 1e-9);
  EXPECT_EQ(full.proton, 1.007276452);
  EXPECT_EQ(parse_mass_table("full"), MassTable::full);
  EXPECT_EQ(parse_mass_table("exact"), std::nullopt);
}

TEST(Residues, TextAndIdsAreTheSamePeptide) {
  const ResidueAlphabet alphabet;
  const auto ids = alphabet.ids("PEPTIDE").take_or_throw();
  EXPECT_EQ(ids, (std::vector<int32_t>{18, 9, 18, 20, 13, 7, 9}));
  EXPECT_EQ(alphabet.text(ids), "PEPTIDE");
  EXPECT_EQ(alphabet.text(std::vector<int32_t>{kStart, 18, 9, kUnknown, kEnd, 9, kPad}), "PEX");
}

TEST(Residues, ModifiedOnesAreTokensOfTheirOwn) {
  const ResidueAlphabet alphabet(MassTable::full, massive_kb_modifications());
  ASSERT_EQ(alphabet.size(), 32);
  const auto difference = [&](int32_t id) {
    const char letter = alphabet.letter(id);
    return alphabet.mass(id) - (letter == 0 ? 0 : alphabet.mass(residue_id(letter)));
  };
  // unimod.org: 4, 35, 7, 7; 1, 5, 385, and the sum of the last two.
  constexpr double kExpected[] = {57.021464, 15.994915, 0.984016,   0.984016,
                                  42.010565, 43.005814, -17.026549, 25.979265};
  for (int32_t i = 0; i < 8; ++i) EXPECT_NEAR(difference(24 + i), kExpected[i], 1e-6) << i;
  for (int32_t id = 24; id < 28; ++id) EXPECT_TRUE(alphabet.is_residue(id));
  for (int32_t id = 28; id < 32; ++id) EXPECT_TRUE(alphabet.is_terminal(id));
  EXPECT_EQ(alphabet.neutral_loss(26), NeutralLoss::ammonia);
  const ResidueAlphabet reference(MassTable::reference, massive_kb_modifications());
  EXPECT_DOUBLE_EQ(reference.mass(24), 103.00919 + 57.02146);
}

TEST(Residues, NotationsOfModificationsAreOne) {
  const ResidueAlphabet alphabet(MassTable::reference, massive_kb_modifications());
  for (const char* text :
       {"AM+15.995K", "AM[+15.995]K", "AM(+15.99)K", "AM[15.9949]K", "AM[Oxidation]K",
        "AM(oxidation)K", "AM[UNIMOD:35]K", "AM[U:Oxidation]K"})
    EXPECT_EQ(alphabet.text(alphabet.ids(text).take_or_throw()), "AM+15.995K") << text;
  for (const char* text : {"+42.011AK", "[+42.011]-AK", "[Acetyl]-AK", "n[42.0106]AK",
                           "n[+42.01]AK", "(Acetyl)AK", "[UNIMOD:1]-AK"})
    EXPECT_EQ(alphabet.text(alphabet.ids(text).take_or_throw()), "+42.011AK") << text;
  EXPECT_EQ(alphabet.text(alphabet.ids("+43.006-17.027AK").take_or_throw()), "+43.006-17.027AK");
  EXPECT_EQ(alphabet.text(alphabet.ids("-17.027QK").take_or_throw()), "-17.027QK");
  EXPECT_EQ(alphabet.text(alphabet.ids("Q[Gln->pyro-Glu]K").take_or_throw()), "-17.027QK");
  EXPECT_EQ(alphabet.text(alphabet.ids("[Acetyl]-C[Carbamidomethyl]K").take_or_throw()),
            "+42.011C+57.021K");
  for (const std::string text : {"+42.011C+57.021N+0.984Q+0.984M+15.995", "PEPTIDE"})
    EXPECT_EQ(alphabet.text(alphabet.ids(text).take_or_throw()), text);
}

TEST(Residues, WhatIsNoPeptideIsNamedWithItsPlace) {
  const ResidueAlphabet alphabet(MassTable::reference, {"M+15.995"});
  const auto expect = [&](const char* text, Problem problem, const char* message) {
    const PeptideText read = alphabet.read(text);
    EXPECT_EQ(read.problem, problem) << text;
    EXPECT_THAT(read.message, HasSubstr(message)) << text;
    EXPECT_FALSE(alphabet.ids(text).ok());
  };
  expect("PEPXIDE", Problem::unknown_residue, "'X' is no residue at character 4 of 'PEPXIDE'");
  expect("pep", Problem::unknown_residue, "'p' is no residue at character 1");
  expect("PE PE", Problem::malformed, "' ' is no residue at character 3");
  expect("PE\nPE", Problem::malformed, "'\\x0a' is no residue at character 3");
  expect("PEM[Oxid", Problem::malformed, "'[' is not closed at character 4");
  expect("PEM[Mystery]", Problem::unknown_modification, "'Mystery' is no modification");
  expect("PEM+", Problem::unknown_modification, "'+' is no modification");
  expect("PEM+1e5", Problem::unknown_modification, "no M with +1.000 Da");
  expect("PEC+57.021", Problem::unknown_modification, "no C with +57.021 Da at character 3");
  expect("+42.011PE", Problem::unknown_modification, "no N-terminal modification of +42.011 Da");
  expect("M+15.995+15.995", Problem::unknown_modification, "no M with +31.990 Da");
  EXPECT_THAT(alphabet.ids("").error(), HasSubstr("has no residue"));
}

TEST(Residues, AlphabetsRefuseWhatIsNoModification) {
  const auto message = [](const std::vector<std::string>& modifications) {
    try {
      const ResidueAlphabet alphabet(MassTable::reference, modifications);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(message({"X+1"}), HasSubstr("'X' is no residue"));
  EXPECT_THAT(message({"M"}), HasSubstr("expected a residue and what is added"));
  EXPECT_THAT(message({""}), HasSubstr("expected a residue and what is added"));
  EXPECT_THAT(message({"M+oxygen"}), HasSubstr("such as M+15.995"));
  EXPECT_THAT(message({"M+15.995", "M+15.9949"}), HasSubstr("is the same as 'M+15.995'"));
  EXPECT_THAT(message({"G-60"}), HasSubstr("leaves the residue no mass"));
}

TEST(Residues, AnyModificationExtendsTheAlphabet) {
  const ResidueAlphabet alphabet(MassTable::full, {"S+79.966", "K+229.163"});
  EXPECT_NEAR(alphabet.mass(24) - alphabet.mass(residue_id('S')), 79.966331, 1e-5);  // UNIMOD:21
  EXPECT_NEAR(alphabet.mass(25) - alphabet.mass(residue_id('K')), 229.163, 1e-12);
  EXPECT_EQ(alphabet.text(alphabet.ids("AS[Phospho]K+229.16").take_or_throw()),
            "AS+79.966K+229.163");
}

}  // namespace
}  // namespace fullbore::peptide
