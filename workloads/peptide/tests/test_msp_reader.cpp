#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;
using testing::FileContents;
using testing::gzipped;
using ::testing::HasSubstr;
using testing::read_text_as;

const std::string kLibrary =
    "Name: PEPTIDE/2\n"
    "MW: 799.36\n"
    "Comment: Parent=400.687 Collision_energy=30 Mods=0 ModString=PEPTIDE//2\n"
    "Num peaks: 2\n"
    "98.06003\t0.5\t\"b1/0.0ppm\"\n"
    "703.31445\t1\t\"y6;y6-H2O\"\n"
    "\n"
    "\n"
    "Name: AMCAK/3_2(1,M,Oxidation)(2,C,CAM)_35eV\n"
    "MW: 600.2\n"
    "Comment: Spec=Consensus Fullname=\"R.AMCAK.L/3 x=y\" Mods=2(1,M,Oxidation)(2,C,CAM) "
    "NCE=35.0%\n"
    "Num peaks: 3\n"
    "100 1; 200 2;\n"
    "300 3;\n";

TEST(MspReader, ReadsRecords) {
  for (const std::string& text : {kLibrary, gzipped(kLibrary)}) {
    const FileContents contents = read_text_as("a.msp", text);
    EXPECT_EQ(contents.error, "");
    ASSERT_EQ(contents.spectra.size(), 2U);
    const Spectrum& first = contents.spectra[0];
    EXPECT_EQ(first.sequence, "PEPTIDE");
    EXPECT_EQ(first.title, "PEPTIDE/2");
    EXPECT_EQ(first.precursor_charge, 2);
    EXPECT_EQ(first.precursor_mz, 400.687);
    EXPECT_EQ(first.stated_mass, 799.36);
    EXPECT_EQ(first.collision_energy, 30);
    EXPECT_THAT(first.mz, ElementsAre(98.06003, 703.31445));
    const Spectrum& second = contents.spectra[1];
    EXPECT_EQ(second.sequence, "AM[Oxidation]C[Carbamidomethyl]AK");
    EXPECT_EQ(second.precursor_charge, 3);
    EXPECT_TRUE(std::isnan(second.precursor_mz));
    EXPECT_EQ(second.stated_mass, 600.2);
    EXPECT_EQ(second.collision_energy, 35);
    EXPECT_THAT(second.mz, ElementsAre(100, 200, 300));
    EXPECT_THAT(second.intensity, ElementsAre(1, 2, 3));
    EXPECT_EQ(second.line, 9U);
  }
}

TEST(MspReader, ModificationsComeInTwoNotations) {
  const auto sequence = [](const std::string& name, const std::string& mods) {
    const FileContents contents = read_text_as(
        "a.msp", "Name: " + name + "\nComment: Mods=" + mods + " Parent=400\nNum peaks: 0\n");
    return contents.error.empty() ? contents.spectra.at(0).sequence : contents.error;
  };
  EXPECT_EQ(sequence("ACK/2", "1/1,C,Carbamidomethyl"), "AC[Carbamidomethyl]K");
  EXPECT_EQ(sequence("ACM/2", "2/1,C,CAM/2,M,Oxidation"), "AC[Carbamidomethyl]M[Oxidation]");
  EXPECT_EQ(sequence("ACK/2", "2(-1,A,Acetyl)(1,C,CAM)"), "[Acetyl]-AC[Carbamidomethyl]K");
  EXPECT_EQ(sequence("QCK/2", "1/0,Q,Gln->pyro-Glu"), "Q[Gln->pyro-Glu]CK");
  EXPECT_EQ(sequence("AC[57.021]K/2", "1/1,C,CAM"), "AC[57.021]K");  // the name has its own
  EXPECT_EQ(sequence("ACK/2", "0"), "ACK");
  EXPECT_THAT(sequence("ACK/2", "2/1,C,CAM"), HasSubstr("a.msp:2: Mods is '2/1,C,CAM'"));
  EXPECT_THAT(sequence("ACK/2", "1/x,C,CAM"), HasSubstr("expected a count and as many"));
  EXPECT_THAT(sequence("ACK/2", "1/7,C,CAM"),
              HasSubstr("a.msp:1: Mods names position 7 of a peptide of 3"));
}

TEST(MspReader, OtherFieldsSayChargeAndPrecursor) {
  const FileContents contents =
      read_text_as("a.msp", "NAME: PEPTIDE\nPrecursorMZ: 400.687\nCharge: 2+\nNumPeaks: 1\n98 1\n");
  ASSERT_EQ(contents.error, "");
  EXPECT_EQ(contents.spectra.at(0).precursor_charge, 2);
  EXPECT_EQ(contents.spectra.at(0).precursor_mz, 400.687);
}

// Its writer counts all ions of a prediction and leaves out those of no intensity.
TEST(MspReader, OfMs2pipFewerPeaksAreEnough) {
  const std::string head =
      "Name: PEPTIDE/2\nMW: 801.37\nComment: Mods=0 Parent=400.687 MS2PIP_ID=\"7\"\n";
  const auto contents =
      read_text_as("a.msp", head + "Num peaks: 3\n98.06\t10\t\"b1\"\n148.06\t7\t\"y1\"\n\n" + head +
                                "Num peaks: 1\n98.06\t10\t\"b1\"\n");
  ASSERT_EQ(contents.error, "");
  ASSERT_EQ(contents.spectra.size(), 2U);
  EXPECT_EQ(contents.spectra[0].mz.size(), 2U);
  EXPECT_EQ(read_text_as("a.msp", head + "Num peaks: 2\n98.06 10\n").error,
            "a.msp:1: Num peaks is 2, and 1 are there")
      << "a torn file";
  EXPECT_EQ(read_text_as("a.msp", head + "Num peaks: 1\n98.06 10\n99 1\n\n").error,
            "a.msp:6: a peak beyond the 1 of Num peaks: '99 1'");
}

TEST(MspReader, RefusesWhatIsMalformedByLineAndField) {
  const auto error = [](const std::string& text) { return read_text_as("a.msp", text).error; };
  const std::string head = "Name: PEPTIDE/2\nMW: 799.4\n";
  EXPECT_EQ(error(head), "a.msp:1: the file ends before the Num peaks of this record");
  EXPECT_EQ(error(head + "\n"), "a.msp:3: the record of line 1 ends without Num peaks");
  EXPECT_EQ(error(head + "Num peaks: many\n"), "a.msp:3: Num peaks is 'many', expected a count");
  EXPECT_EQ(error(head + "Num peaks: -1\n"), "a.msp:3: Num peaks is '-1', expected a count");
  EXPECT_EQ(error(head + "Num peaks: 2\n100 1\n\n"), "a.msp:5: Num peaks is 2, and 1 are there");
  EXPECT_EQ(error(head + "Num peaks: 2\n100 1\n"), "a.msp:1: Num peaks is 2, and 1 are there");
  EXPECT_EQ(error(head + "Num peaks: 1\n100 1\n200 1\n"),
            "a.msp:5: a peak beyond the 1 of Num peaks: '200 1'");
  EXPECT_EQ(error(head + "Num peaks: 1\n100\n"), "a.msp:4: the peak '100' has no intensity");
  EXPECT_EQ(error(head + "Num peaks: 1\nm 1\n"), "a.msp:4: m/z is 'm', expected a number");
  EXPECT_EQ(error(head + "nonsense\n"), "a.msp:3: 'nonsense' is no 'Field: value'");
  EXPECT_EQ(error(head + "Name: AAAK/2\n"),
            "a.msp:3: Name within the record of line 1, which has no Num peaks");
  EXPECT_EQ(error("Name: PEPTIDE/x\n"),
            "a.msp:1: the charge of Name is 'x', expected a positive one such as 2");
  EXPECT_EQ(error("Name: PEPTIDE/2\nCharge: 3\n"),
            "a.msp:2: Charge says charge 3, which was 2 before");
  EXPECT_EQ(error("Name:\n"), "a.msp:1: Name is empty");
  EXPECT_EQ(error("Name: PEPTIDE/2\nMW: light\n"),
            "a.msp:2: MW is 'light', expected a number of more than 0");
  EXPECT_EQ(error("Name: PEPTIDE/2\nComment: Parent=0\n"),
            "a.msp:2: Parent is '0', expected a number of more than 0");
  EXPECT_EQ(error("Name: PEPTIDE/2\nNum peaks: 0\n"),
            "a.msp:1: the record has neither Parent nor PrecursorMZ nor MW");
  EXPECT_EQ(error("Name: PEPTIDE\nMW: 4\nNum peaks: 0\n"),
            "a.msp:1: the spectrum has no charge, and no default is given");
  EXPECT_EQ(error(kLibrary + "\nMW: 3\n"),
            "a.msp:16: 'MW: 3', expected a record that begins with Name:");
}

}  // namespace
}  // namespace fullbore::peptide
