#include "workloads/peptide/ions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fullbore/base/philox.h"

namespace fullbore::peptide {
namespace {

constexpr double kTolerance = 1e-5;  // Da, of the specification's golden numbers

std::string label(const Ion& ion) {
  std::string text(ion_type_name(ion.type));
  text += std::to_string(ion.number) + std::string(static_cast<size_t>(ion.charge - 1), '+');
  if (ion.loss == NeutralLoss::water) text += "-H2O";
  if (ion.loss == NeutralLoss::ammonia) text += "-NH3";
  return text;
}

std::map<std::string, double> ions_of(const char* peptide, const IonOptions& options = {},
                                      const ResidueAlphabet& alphabet = ResidueAlphabet()) {
  std::map<std::string, double> ions;
  for (const Ion& ion : theoretical_ions(alphabet, alphabet.ids(peptide).take_or_throw(), options))
    ions[label(ion)] = ion.mz;
  return ions;
}

void expect_series(const std::map<std::string, double>& ions, char type,
                   const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string name = type + std::to_string(i + 1);
    EXPECT_NEAR(ions.at(name), expected[i], kTolerance) << name;
  }
}

double mass_of_text(const char* peptide) {
  const ResidueAlphabet alphabet;
  return neutral_mass(alphabet, alphabet.ids(peptide).take_or_throw());
}

TEST(Ions, OfPeptide) {
  const MassConstants& constants = mass_constants(MassTable::reference);
  const double mass = mass_of_text("PEPTIDE");
  EXPECT_NEAR(mass, 799.35994, kTolerance);
  EXPECT_NEAR(precursor_mz(mass, 2, constants), 400.687240, kTolerance);
  EXPECT_NEAR(precursor_mz(mass, 3, constants), 267.460583, kTolerance);
  EXPECT_NEAR(mass_of_precursor(400.687240, 2, constants), mass, 2 * kTolerance);
  const auto ions =
      ions_of("PEPTIDE", {.types = {IonType::b, IonType::y, IonType::a}, .max_charge = 2});
  EXPECT_EQ(ions.size(), 36U);
  expect_series(ions, 'b', {98.06003, 227.10262, 324.15538, 425.20306, 538.28712, 653.31406});
  expect_series(ions, 'y', {148.06042, 263.08736, 376.17142, 477.21910, 574.27186, 703.31445});
  EXPECT_NEAR(ions.at("a1"), 70.06512, kTolerance);
  EXPECT_NEAR(ions.at("a6"), 625.31915, kTolerance);
  EXPECT_NEAR(ions.at("b2+"), 114.054945, kTolerance);
  EXPECT_NEAR(ions.at("y6+"), 352.160860, kTolerance);
}

TEST(Ions, LoseWaterOrAmmoniaBesideTheCleavage) {
  const auto ions = ions_of("PEPTIDE", {.neutral_losses = true});
  EXPECT_EQ(ions.size(), 19U);
  EXPECT_NEAR(ions.at("b2-H2O"), 209.09206, kTolerance);
  EXPECT_NEAR(ions.at("b4-H2O"), 407.19250, kTolerance);
  EXPECT_NEAR(ions.at("b6-H2O"), 635.30350, kTolerance);
  EXPECT_NEAR(ions.at("y1-H2O"), 130.04986, kTolerance);
  EXPECT_NEAR(ions.at("y2-H2O"), 245.07680, kTolerance);
  EXPECT_NEAR(ions.at("y4-H2O"), 459.20854, kTolerance);
  EXPECT_NEAR(ions.at("y6-H2O"), 685.30389, kTolerance);
  const auto lysine = ions_of("LESLIEK", {.neutral_losses = true});
  EXPECT_NEAR(lysine.at("y1-NH3"), 147.11279 - 17.02655, kTolerance);
  const auto a = ions_of("PEPTIDE", {.types = {IonType::a}, .neutral_losses = true});
  EXPECT_EQ(a.size(), 6U);
}

TEST(Ions, OfOtherGoldenPeptides) {
  const MassConstants& constants = mass_constants(MassTable::reference);
  EXPECT_NEAR(mass_of_text("LESLIEK"), 830.47491, kTolerance);
  EXPECT_NEAR(precursor_mz(mass_of_text("LESLIEK"), 2, constants), 416.244725, kTolerance);
  const auto lysine = ions_of("LESLIEK");
  expect_series(lysine, 'b', {114.09133, 243.13392, 330.16595, 443.25001, 556.33407, 685.37666});
  expect_series(lysine, 'y', {147.11279, 276.15538, 389.23944, 502.32350, 589.35553, 718.39812});
  EXPECT_NEAR(mass_of_text("ACDEFGHIK"), 1018.45419, kTolerance);
  EXPECT_NEAR(precursor_mz(mass_of_text("ACDEFGHIK"), 3, constants), 340.492000, kTolerance);
  EXPECT_NEAR(ions_of("ACDEFGHIK").at("b8"), 873.35594, kTolerance);
  EXPECT_NEAR(ions_of("ACDEFGHIK").at("y8"), 948.42435, kTolerance);
  EXPECT_NEAR(mass_of_text("GG"), 132.05348, kTolerance);
  EXPECT_NEAR(ions_of("GG").at("b1"), 58.02873, kTolerance);
  EXPECT_NEAR(ions_of("GG").at("y1"), 76.03929, kTolerance);
  EXPECT_TRUE(ions_of("G").empty());
}

TEST(Ions, ComplementsAddUpToThePrecursor) {
  PhiloxStream draws(7);
  for (const MassTable table : {MassTable::reference, MassTable::full}) {
    const ResidueAlphabet alphabet(table, massive_kb_modifications());
    for (int trial = 0; trial < 200; ++trial) {
      std::vector<int32_t> ids;
      if (draws.below(2) == 0) ids.push_back(28 + static_cast<int32_t>(draws.below(4)));
      const size_t n = 2 + draws.below(40);
      for (size_t i = 0; i < n; ++i)
        ids.push_back(kFirstResidue + static_cast<int32_t>(draws.below(24)));
      const double whole = neutral_mass(alphabet, ids) + 2 * alphabet.constants().proton;
      const auto ions = theoretical_ions(alphabet, ids);
      ASSERT_EQ(ions.size(), 2 * (n - 1));
      for (size_t i = 1; i < n; ++i)
        EXPECT_NEAR(ions[i - 1].mz + ions[(n - 1) + (n - i) - 1].mz, whole, 1e-9);
    }
  }
}

TEST(Ions, OfAModifiedTerminusHaveItInTheirFirstResidue) {
  const ResidueAlphabet alphabet(MassTable::reference, {"+42.011"});
  const auto ions = ions_of("+42.011PEPTIDE", {}, alphabet);
  EXPECT_EQ(ions.size(), 12U);
  EXPECT_NEAR(ions.at("b1"), 98.06003 + 42.01056, kTolerance);
  EXPECT_NEAR(ions.at("y6"), 703.31445, kTolerance);
}

TEST(Ions, AreNamed) {
  for (const IonType type : {IonType::b, IonType::y, IonType::a})
    EXPECT_EQ(parse_ion_type(ion_type_name(type)), type);
  EXPECT_EQ(parse_ion_type("c"), std::nullopt);
}

}  // namespace
}  // namespace fullbore::peptide
