#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;
using testing::FileContents;
using testing::gzipped;
using ::testing::HasSubstr;
using testing::read_text_as;

const std::string kHeader =
    "sequence,modified_sequence,precursor_mz,precursor_charge,mz_array,intensity_array\n";

TEST(SpectrumTable, ReadsRowsOfAnyNotation) {
  const std::string commas = kHeader +
                             "AMK,AM[Oxidation]K,400.5,2,\"[100.5, 200.25]\",\"[1.0, 2.0]\"\n"
                             "AMK,,400.5,2+, \"100.5, 200.25\" ,1 2\n"
                             "AMK,,400.5,2.0,\"[100.5\n 200.25]\",\"1;2\"\n";
  const std::string tabs =
      "precursor_mz\tCharge\tmz_array\tintensity_array\tscan\ttitle\tretention_seconds\n"
      "400.5\t2\t100.5,200.25\t[1,2]\t17\ta \"\"title\t8.5\n";
  for (const std::string& text : {commas, gzipped(commas)}) {
    const FileContents contents = read_text_as("a.csv", text);
    EXPECT_EQ(contents.error, "");
    ASSERT_EQ(contents.spectra.size(), 3U);
    EXPECT_EQ(contents.spectra[0].sequence, "AM[Oxidation]K");
    EXPECT_EQ(contents.spectra[1].sequence, "AMK");
    EXPECT_EQ(contents.spectra[2].line, 4U);
    for (const Spectrum& spectrum : contents.spectra) {
      EXPECT_EQ(spectrum.precursor_mz, 400.5);
      EXPECT_EQ(spectrum.precursor_charge, 2);
      EXPECT_THAT(spectrum.mz, ElementsAre(100.5, 200.25));
      EXPECT_THAT(spectrum.intensity, ElementsAre(1, 2));
    }
  }
  const FileContents contents = read_text_as("a.tsv", tabs);
  ASSERT_EQ(contents.error, "");
  EXPECT_EQ(contents.spectra.at(0).scan, "17");
  EXPECT_EQ(contents.spectra.at(0).title, "a \"\"title");
  EXPECT_EQ(contents.spectra.at(0).retention_seconds, 8.5);
  EXPECT_THAT(contents.spectra.at(0).mz, ElementsAre(100.5, 200.25));
}

TEST(SpectrumTable, MissingChargesNeedADefault) {
  const std::string text = kHeader + "AMK,,400.5,,1 2,3 4\n";
  EXPECT_EQ(read_text_as("a.csv", text).error,
            "a.csv:2: the spectrum has no charge, and no default is given");
  EXPECT_EQ(read_text_as("a.csv", text, {.default_charge = 3}).spectra.at(0).precursor_charge, 3);
  const std::string none = "precursor_mz,mz_array,intensity_array\n400.5,1,3\n";
  EXPECT_EQ(read_text_as("a.csv", none, {.default_charge = 3}).spectra.at(0).precursor_charge, 3);
  EXPECT_THAT(read_text_as("a.csv", none).error, HasSubstr("no column is precursor_charge"));
}

TEST(SpectrumTable, RefusesWhatIsMalformedByLineAndField) {
  const auto error = [](const std::string& row) {
    return read_text_as("a.csv", kHeader + row + "\n").error;
  };
  EXPECT_EQ(error("AMK,,x,2,1,1"),
            "a.csv:2: precursor_mz is 'x', expected a number of more than 0");
  EXPECT_EQ(error("AMK,,4,x,1,1"), "a.csv:2: precursor_charge is 'x', expected a positive charge");
  EXPECT_EQ(error("AMK,,4,2,1 x,1 1"), "a.csv:2: mz_array has 'x', expected numbers");
  EXPECT_EQ(error("AMK,,4,2,1 ...,1 1"), "a.csv:2: mz_array has '...', expected numbers");
  EXPECT_EQ(error("AMK,,4,2,1 2,1"), "a.csv:2: intensity_array has 1 numbers, and mz_array 2");
  EXPECT_EQ(error("AMK,,4,2,1 0,1 1"), "a.csv:2: peak 2: m/z is 0, expected more than 0");
  EXPECT_EQ(error("AMK,,4,2,1,-1"), "a.csv:2: peak 1: intensity is -1, expected 0 or more");
  EXPECT_EQ(error("AMK,4"), "a.csv:2: the row has 2 cells, and 6 columns are named");
  EXPECT_EQ(error("AMK,,4,2,\"1,1"), "a.csv:2: a quote does not end");
  EXPECT_THAT(error("AMK,,4,2,\"1\"x,1"), HasSubstr("a.csv:2: text follows the end of a quoted"));
  EXPECT_EQ(
      read_text_as("a.csv", "precursor_mz,precursor_charge,mz_arrays,intensity_array\n").error,
      "a.csv:1: no column is mz_array; the nearest is 'mz_arrays'");
  EXPECT_EQ(read_text_as("a.csv", kHeader.substr(0, kHeader.size() - 1) + ",mz_array\n").error,
            "a.csv:1: two columns are mz_array");
}

}  // namespace
}  // namespace fullbore::peptide
