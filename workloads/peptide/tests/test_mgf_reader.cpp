#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/support/paths.h"
#include "workloads/peptide/ions.h"
#include "workloads/peptide/prepare_spectrum.h"
#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using ::testing::ElementsAre;
using testing::FileContents;
using testing::gzipped;
using ::testing::HasSubstr;
using testing::read_file;
using testing::read_text_as;

const std::string kTwo =
    "# made by hand\n"
    "COM=two spectra\n"
    "\n"
    "BEGIN IONS\n"
    "TITLE=first of two\n"
    "PEPMASS=400.687240 1234.5\n"
    "CHARGE=2+\n"
    "SCANS=F1:17\n"
    "RTINSECONDS=824.574\n"
    "SEQ=PEPTIDE\n"
    "98.06003 0.5\n"
    "703.31445\t1e2 1+\n"
    "END IONS\n"
    "BEGIN IONS\n"
    "PEPMASS=267.46\n"
    "CHARGE=3\n"
    "END IONS\n";

void expect_two(const FileContents& contents) {
  EXPECT_EQ(contents.error, "");
  ASSERT_EQ(contents.spectra.size(), 2U);
  const Spectrum& first = contents.spectra[0];
  EXPECT_EQ(first.title, "first of two");
  EXPECT_EQ(first.scan, "F1:17");
  EXPECT_EQ(first.sequence, "PEPTIDE");
  EXPECT_EQ(first.precursor_mz, 400.687240);
  EXPECT_EQ(first.precursor_intensity, 1234.5);
  EXPECT_EQ(first.precursor_charge, 2);
  EXPECT_EQ(first.retention_seconds, 824.574);
  EXPECT_THAT(first.mz, ElementsAre(98.06003, 703.31445));
  EXPECT_THAT(first.intensity, ElementsAre(0.5F, 100.0F));
  EXPECT_EQ(first.line, 4U);
  const Spectrum& second = contents.spectra[1];
  EXPECT_EQ(second.title, "");
  EXPECT_EQ(second.sequence, "");
  EXPECT_EQ(second.precursor_charge, 3);
  EXPECT_TRUE(std::isnan(second.precursor_intensity));
  EXPECT_TRUE(std::isnan(second.retention_seconds));
  EXPECT_TRUE(second.mz.empty());
}

std::string with_line(const std::string& line) {
  return "BEGIN IONS\nPEPMASS=400\nCHARGE=2+\n" + line + "\nEND IONS\n";
}

TEST(MgfReader, ReadsWhatABlockSays) { expect_two(read_text_as("a.mgf", kTwo)); }

TEST(MgfReader, LineEndsMarkAndNameDoNotMatter) {
  std::string windows;
  for (const char c : kTwo) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  expect_two(read_text_as("a.mgf", windows));
  expect_two(read_text_as("a.mgf", "\xEF\xBB\xBF" + kTwo));
  expect_two(read_text_as("a.mgf", kTwo.substr(0, kTwo.size() - 1)));
  expect_two(read_text_as("spectra.txt", kTwo));
}

TEST(MgfReader, ReadsGzip) {
  const std::string packed = gzipped(kTwo);
  expect_two(read_text_as("a.mgf.gz", packed));
  expect_two(read_text_as("a.mgf", packed));
  const size_t half = kTwo.find("SCANS");
  expect_two(read_text_as("a.mgf.gz", gzipped(kTwo.substr(0, half)) + gzipped(kTwo.substr(half)) +
                                          std::string(512, '\0')));
  EXPECT_THAT(read_text_as("a.mgf.gz", packed.substr(0, packed.size() - 20)).error,
              HasSubstr("a.mgf.gz: ends before its gzip data do"));
  std::string damaged = packed;
  damaged[packed.size() / 2] = static_cast<char>(damaged[packed.size() / 2] ^ 0x55);
  EXPECT_THAT(read_text_as("a.mgf.gz", damaged).error, HasSubstr("a.mgf.gz: "));
  EXPECT_THAT(read_text_as("a.mgf.gz", packed + "more").error,
              HasSubstr("a.mgf.gz: incorrect header"));
}

TEST(MgfReader, ChargesHaveManyForms) {
  for (const char* charge : {"2+", "+2", "2", "2.0", " 2+ "})
    EXPECT_EQ(read_text_as("a.mgf", "BEGIN IONS\nPEPMASS=400\nCHARGE=" + std::string(charge) +
                                        "\nEND IONS\n")
                  .spectra.at(0)
                  .precursor_charge,
              2)
        << charge;
  EXPECT_EQ(read_text_as("a.mgf", "CHARGE=3+\nBEGIN IONS\nPEPMASS=400\nEND IONS\n")
                .spectra.at(0)
                .precursor_charge,
            3);
  EXPECT_EQ(read_text_as("a.mgf", "BEGIN IONS\nPEPMASS=400 10 4+\nEND IONS\n")
                .spectra.at(0)
                .precursor_charge,
            4);
}

TEST(MgfReader, AMissingChargeIsAnErrorUnlessThereIsADefault) {
  const std::string none = "BEGIN IONS\nPEPMASS=400\nEND IONS\n";
  EXPECT_EQ(read_text_as("a.mgf", none).error,
            "a.mgf:1: the spectrum has no charge, and no default is given");
  const std::string several = "BEGIN IONS\nPEPMASS=400\nCHARGE=2+ and 3+\nEND IONS\n";
  EXPECT_EQ(read_text_as("a.mgf", several).error,
            "a.mgf:1: the spectrum has charges 2 and 3, and no default is given");
  const std::string zero = "BEGIN IONS\nPEPMASS=400\nCHARGE=0\nEND IONS\n";
  EXPECT_THAT(read_text_as("a.mgf", zero).error, HasSubstr("has no charge"));
  for (const std::string& text : {none, several, zero})
    EXPECT_EQ(read_text_as("a.mgf", text, {.default_charge = 2}).spectra.at(0).precursor_charge, 2);
}

TEST(MgfReader, RefusesWhatIsMalformedByLineAndField) {
  const auto error = [](const std::string& text) { return read_text_as("a.mgf", text).error; };
  EXPECT_EQ(error("END IONS\n"), "a.mgf:1: END IONS without the BEGIN IONS that it ends");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=1\nCHARGE=2\n"),
            "a.mgf:1: the file ends before the END IONS of this BEGIN IONS");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=1\nBEGIN IONS\n"),
            "a.mgf:3: BEGIN IONS within a spectrum: the one of line 1 has no END IONS");
  EXPECT_EQ(error("BEGIN IONS\nCHARGE=2\nEND IONS\n"), "a.mgf:1: the spectrum has no PEPMASS");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=heavy\nEND IONS\n"),
            "a.mgf:2: PEPMASS is 'heavy', expected an m/z of more than 0");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=-4\nEND IONS\n"),
            "a.mgf:2: PEPMASS is '-4', expected an m/z of more than 0");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=nan\nEND IONS\n"),
            "a.mgf:2: PEPMASS is 'nan', expected an m/z of more than 0");
  EXPECT_EQ(error("BEGIN IONS\nPEPMASS=4 many\nEND IONS\n"),
            "a.mgf:2: PEPMASS is '4 many', expected 'mz intensity'");
  EXPECT_EQ(error(with_line("PEPMASS=5")), "a.mgf:4: PEPMASS is there twice");
  EXPECT_EQ(error(with_line("CHARGE=3")), "a.mgf:4: CHARGE is there twice");
  EXPECT_EQ(error(with_line("SEQ=AK\nSEQ=GK")), "a.mgf:5: SEQ is there twice");
  EXPECT_EQ(error(with_line("RTINSECONDS=soon")),
            "a.mgf:4: RTINSECONDS is 'soon', expected seconds");
  EXPECT_EQ(error(with_line("hello")),
            "a.mgf:4: 'hello' is neither KEY=VALUE nor a peak 'mz intensity'");
  EXPECT_EQ(error(with_line("100.5")), "a.mgf:4: the peak '100.5' has no intensity");
  EXPECT_EQ(error(with_line("100.5x 1")), "a.mgf:4: m/z is '100.5x', expected a number");
  EXPECT_EQ(error(with_line("100.5 one")), "a.mgf:4: intensity is 'one', expected a number");
  EXPECT_EQ(error(with_line("100.5 -1")), "a.mgf:4: intensity is -1, expected 0 or more");
  EXPECT_EQ(error(with_line("100.5 inf")), "a.mgf:4: intensity is 'inf', expected a number");
  EXPECT_EQ(error(with_line("0 1")), "a.mgf:4: m/z is 0, expected more than 0");
  for (const char* charge : {"2-", "-2", "two", "++2", "101", "2.5"})
    EXPECT_EQ(
        error("BEGIN IONS\nPEPMASS=4\nCHARGE=" + std::string(charge) + "\nEND IONS\n"),
        "a.mgf:3: CHARGE is '" + std::string(charge) + "', expected a positive charge such as 2+");
  EXPECT_EQ(error("BEGIN IONS\nEND IONS\n100 2\n"), "a.mgf:1: the spectrum has no PEPMASS");
  EXPECT_EQ(error(kTwo + "100 2\n"),
            "a.mgf:18: '100 2' stands between spectra, expected BEGIN IONS");
}

TEST(MgfReader, SpectraAheadOfAMistakeAreRead) {
  const FileContents contents = read_text_as("a.mgf", kTwo + "BEGIN IONS\n");
  EXPECT_EQ(contents.spectra.size(), 2U);
  EXPECT_THAT(contents.error, HasSubstr("a.mgf:18: "));
}

TEST(SpectrumReader, SaysWhatItCannotOpen) {
  EXPECT_THAT(read_text_as("a.mgf", "").error, HasSubstr("a.mgf: the file is empty"));
  EXPECT_THAT(read_text_as("a.txt", "hello\n").error,
              HasSubstr("a.txt: neither contents nor name are those of MGF, MSP, mzML"));
  EXPECT_THAT(read_file("/nowhere/a.mgf").error, HasSubstr("/nowhere/a.mgf"));
  EXPECT_THAT(read_file("/tmp").error, HasSubstr("/tmp"));
}

TEST(MgfReader, ReadsAllOfTheSampleWithMassesThatAgree) {
  const std::string path = fullbore::testing::shared_folder() + "/data/casanovo-sample.mgf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const FileContents contents = read_file(path);
  EXPECT_EQ(contents.error, "");
  ASSERT_EQ(contents.spectra.size(), 128U);
  const ResidueAlphabet alphabet(MassTable::full, massive_kb_modifications());
  for (const Spectrum& spectrum : contents.spectra) {
    const auto ids = alphabet.ids(spectrum.sequence).take_or_throw();
    const double theoretical = neutral_mass(alphabet, ids);
    const double observed =
        mass_of_precursor(spectrum.precursor_mz, spectrum.precursor_charge, alphabet.constants());
    EXPECT_NEAR(observed, theoretical, theoretical * 50e-6) << spectrum.sequence;
    EXPECT_GE(spectrum.mz.size(), 20U);
  }
  SpectrumPreparation preparation({}, alphabet);
  PreparedSpectrum prepared;
  for (const Spectrum& spectrum : contents.spectra) preparation.prepare(spectrum, prepared);
  EXPECT_EQ(preparation.counts().kept, 126U);  // two have six residues
  EXPECT_EQ(preparation.counts().dropped[static_cast<size_t>(DropReason::short_peptide)], 2U);
}

}  // namespace
}  // namespace fullbore::peptide
