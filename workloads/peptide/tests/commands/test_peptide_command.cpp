#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class PeptideCommand : public ::testing::Test {
 protected:
  CommandResult command(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "peptide");
    return run_command(folder_.path(), arguments);
  }
  std::string refused(const std::vector<std::string>& arguments, int exit_code) const {
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.out;
    EXPECT_EQ(result.out, "");
    return result.err;
  }
  testing::ScratchFolder folder_;
};

TEST_F(PeptideCommand, PrintsIons) {
  const CommandResult text = command({"ions", "GAK", "--types", "y,b", "--neutral-losses"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out,
            "GAK: 274.16409 Da, 2+ at m/z 138.089315\n"
            "\n"
            "  b     y           y       y-NH3           b\n"
            "  1 G   3                            58.02873\n"
            "  2 A   2   218.14990               129.06584\n"
            "  3 K   1   147.11279   130.08624\n");
  const CommandResult charged = command({"ions", "PEPTIDE", "--charge", "3"});
  EXPECT_THAT(charged.out, HasSubstr("3+ at m/z 267.460583"));
  EXPECT_THAT(charged.out,
              HasSubstr("  2 E   6   227.10262   114.05495   703.31445   352.16086\n"));
  EXPECT_THAT(command({"ions", "PEPTIDE", "--charge", "3", "--fragment-charges", "1"}).out,
              HasSubstr("  2 E   6   227.10262   703.31445\n"));
}

TEST_F(PeptideCommand, PrintsIonsAsJson) {
  const CommandResult result =
      command({"ions", "[Acetyl]-PEPTIDE", "--masses", "full", "--neutral-losses", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["sequence"], "+42.011PEPTIDE");
  EXPECT_EQ(json["residues"][0], "+42.011P");
  EXPECT_EQ(json["masses"], "full");
  EXPECT_NEAR(json["mass"].get<double>(), 799.359964 + 42.010565, 1e-5);
  ASSERT_EQ(json["ions"].size(), 19U);
  EXPECT_EQ(json["ions"][2]["ion"], "b2-H2O");
  EXPECT_EQ(json["ions"][2]["loss"], "H2O");
  EXPECT_TRUE(json["ions"][0]["loss"].is_null());
}

TEST_F(PeptideCommand, WhatIsNoPeptideIsExplained) {
  EXPECT_THAT(refused({"ions", "PEPXIDE"}, 2),
              HasSubstr("ions: 'X' is no residue at character 4 of 'PEPXIDE'"));
  EXPECT_THAT(refused({"ions", "PEPTIDE", "--types", "b,c"}, 2),
              HasSubstr("'c' is no type of ion"));
  EXPECT_THAT(refused({"ions", "PEPTIDE", "--charge", "0"}, 2), HasSubstr("--charge"));
  EXPECT_THAT(refused({"ions", "PEPTIDE", "--masses", "exact"}, 2), HasSubstr("--masses"));
  EXPECT_THAT(refused({"ions", "S+79.966AK"}, 2), HasSubstr("no S with +79.966 Da"));
  EXPECT_EQ(command({"ions", "S+79.966AK", "--modifications", "S+79.966"}).exit_code, 0);
  EXPECT_THAT(refused({"ions", "PEPTIDE", "--modifications", "Z+1"}, 2),
              HasSubstr("modification 'Z+1': 'Z' is no residue"));
  EXPECT_THAT(refused({"ion", "PEPTIDE"}, 2), HasSubstr("ion"));
}

TEST_F(PeptideCommand, ConvertsTheSample) {
  const std::string sample = testing::shared_folder() + "/data/casanovo-sample.mgf";
  if (!std::filesystem::exists(sample)) GTEST_SKIP() << sample << " is not there";
  const CommandResult text =
      command({"convert", sample, "-o", "a.cache", "--modifications", "massivekb"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("a.cache: 126 of 128 spectra, "));
  EXPECT_THAT(text.out, HasSubstr("           2 dropped: fewer than 7 residues\n"));
  EXPECT_THAT(refused({"convert", sample, "-o", "a.cache"}, 2), HasSubstr("--force replaces it"));
  const CommandResult json = command({"convert", sample, "-o", "a.cache", "--force", "--json"});
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["read"], 128);
  EXPECT_EQ(report["dropped"]["unknown_modification"], 25);
  EXPECT_EQ(report["kept"], 101);
  EXPECT_EQ(report["bytes"], std::filesystem::file_size(folder_ / "a.cache"));
}

TEST_F(PeptideCommand, WhatCannotBeConvertedIsNamed) {
  const std::string bad = folder_.put("bad.mgf", "BEGIN IONS\nPEPMASS=400\nEND IONS\n");
  EXPECT_THAT(refused({"convert", "bad.mgf", "-o", "a.cache"}, 3),
              HasSubstr("none of the 1 spectra of bad.mgf is of use: 1: malformed, or no single "
                        "charge (bad.mgf:1: the spectrum has no charge, and no default is given)"));
  EXPECT_THAT(refused({"convert", "bad.mgf", "-o", "a.cache", "--on-bad-spectrum", "fail"}, 3),
              HasSubstr("fullbore: bad.mgf:1: the spectrum has no charge"));
  EXPECT_THAT(refused({"convert", "bad.mgf", "-o", "a.cache", "--default-charge", "2"}, 3),
              HasSubstr("none of the 1 spectra of bad.mgf is of use: 1: no sequence"));
  EXPECT_THAT(refused({"convert", "bad.mgf", "-o", "a.cache", "--format", "mzML"}, 3),
              HasSubstr("bad.mgf:1: "));
  EXPECT_THAT(refused({"convert", "missing.mgf", "-o", "a.cache"}, 3), HasSubstr("missing.mgf"));
  EXPECT_THAT(refused({"convert", "bad.mgf", "-o", "a.cache", "--min-intensity", "2"}, 2),
              HasSubstr("--min-intensity: Value 2 not in range"));
  EXPECT_THAT(refused({"convert", "bad.mgf"}, 2), HasSubstr("--output is required"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a.cache"));
}

}  // namespace
}  // namespace fullbore
