#include "workloads/peptide/spectrum_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tests/support/scratch_folder.h"
#include "workloads/peptide/convert_spectra.h"
#include "workloads/peptide/ions.h"

namespace fullbore::peptide {
namespace {

using fullbore::testing::ScratchFolder;
using ::testing::HasSubstr;

const ResidueAlphabet& alphabet() {
  static const ResidueAlphabet instance(MassTable::reference, massive_kb_modifications());
  return instance;
}

// A spectrum of the peptide in MGF, with its b and y ions.
std::string block(const std::string& sequence) {
  const auto ids = alphabet().ids(sequence).take_or_throw();
  std::string text =
      fmt::format("BEGIN IONS\nPEPMASS={}\nCHARGE=2+\nSEQ={}\n",
                  precursor_mz(neutral_mass(alphabet(), ids), 2, alphabet().constants()), sequence);
  for (const Ion& ion : theoretical_ions(alphabet(), ids))
    text += fmt::format("{} {}\n", ion.mz, ion.number);
  return text + "END IONS\n";
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string error_of(const std::string& path) {
  const auto cache = SpectrumCache::open(path);
  return cache.ok() ? "opened" : cache.error();
}

TEST(SpectrumCache, HoldsWhatWasConverted) {
  const ScratchFolder folder;
  const std::string first =
      folder.put("a.mgf", block("PEPTIDEK") + block("PEPT") + block("LESLIEK"));
  const std::string second = folder.put("b.mgf", block("+42.011AC+57.021DEFGHIK"));
  const std::string path = folder / "all.spectra";
  const PreparationCounts counts =
      convert_spectra({first, second}, path, alphabet()).take_or_throw();
  EXPECT_EQ(counts.read, 4U);
  EXPECT_EQ(counts.kept, 3U);
  EXPECT_EQ(counts.dropped[static_cast<size_t>(DropReason::short_peptide)], 1U);
  EXPECT_TRUE(is_spectrum_cache(path));
  EXPECT_FALSE(is_spectrum_cache(first));

  const SpectrumCache cache = SpectrumCache::open(path).take_or_throw();
  ASSERT_EQ(cache.size(), 3U);
  EXPECT_EQ(cache.most_peaks(), 16U);
  EXPECT_EQ(cache.most_residues(), 10U);
  const CachedSpectrum lesliek = cache.get(1);
  EXPECT_EQ(alphabet().text(lesliek.ids), "LESLIEK");
  EXPECT_EQ(lesliek.precursor_charge, 2);
  EXPECT_NEAR(lesliek.precursor_mass, 830.47491, 1e-5);
  ASSERT_EQ(lesliek.peaks.size(), 12U);
  EXPECT_FLOAT_EQ(peak_mz(lesliek.peaks[0]), 114.09133F);
  EXPECT_EQ(alphabet().text(cache.get(2).ids), "+42.011AC+57.021DEFGHIK");
  EXPECT_TRUE(cache.check_alphabet(alphabet()).ok());
  const auto description = nlohmann::json::parse(cache.description());
  EXPECT_EQ(description["kept"], 3);
  EXPECT_EQ(description["dropped"]["short_peptide"], 1);
  EXPECT_EQ(description["modifications"].size(), 8U);
  EXPECT_EQ(description["sources"].size(), 2U);
}

TEST(SpectrumCache, IsOfOneAlphabet) {
  const ScratchFolder folder;
  const std::string path = folder / "a.spectra";
  convert_spectra({folder.put("a.mgf", block("LESLIEK"))}, path, alphabet()).take_or_throw();
  const SpectrumCache cache = SpectrumCache::open(path).take_or_throw();
  const Status plain = cache.check_alphabet(ResidueAlphabet());
  ASSERT_FALSE(plain.ok());
  EXPECT_THAT(plain.error(),
              HasSubstr("a.spectra: was made for masses \"reference\" and modifications "
                        "[\"C+57.021\",\"M+15.995\""));
  EXPECT_THAT(plain.error(), HasSubstr("the model has masses \"reference\" and modifications []"));
  EXPECT_FALSE(
      cache.check_alphabet(ResidueAlphabet(MassTable::full, massive_kb_modifications())).ok());
}

TEST(SpectrumCache, PeptidesHaveOneHashWhateverTheirModifications) {
  const ScratchFolder folder;
  const std::string path = folder / "a.spectra";
  convert_spectra(
      {folder.put("a.mgf", block("MESLIEK") + block("M+15.995ESLIEK") + block("MESIIEK") +
                               block("+42.011MESLLEK") + block("MESLIER"))},
      path, alphabet())
      .take_or_throw();
  const SpectrumCache cache = SpectrumCache::open(path).take_or_throw();
  for (uint64_t i = 1; i < 4; ++i) EXPECT_EQ(cache.peptide_hash(i), cache.peptide_hash(0));
  EXPECT_NE(cache.peptide_hash(4), cache.peptide_hash(0));
}

TEST(SpectrumCache, DamageAnywhereIsFound) {
  const ScratchFolder folder;
  const std::string path = folder / "a.spectra";
  convert_spectra({folder.put("a.mgf", block("LESLIEK") + block("PEPTIDEK"))}, path, alphabet())
      .take_or_throw();
  const std::string whole = read_bytes(path);
  for (size_t i = 0; i < whole.size(); i += 3) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_THAT(error_of(folder.put("damaged", damaged)), HasSubstr("damaged")) << i;
    EXPECT_NE(error_of(folder.put("torn", whole.substr(0, i))), "opened") << i;
  }
  EXPECT_THAT(error_of(folder.put("damaged", whole + "more")), HasSubstr("footer"));
  EXPECT_THAT(error_of(folder / "missing"), HasSubstr("cannot open"));
  EXPECT_THAT(error_of(folder.put("other", std::string(200, 'x'))),
              HasSubstr("no cache of spectra"));
}

// A mapped file would end the process with SIGBUS.
TEST(SpectrumCache, AFileThatChangesInUseIsNamed) {
  const ScratchFolder folder;
  const std::string path = folder / "a.spectra";
  convert_spectra({folder.put("a.mgf", block("LESLIEK") + block("PEPTIDEK"))}, path, alphabet())
      .take_or_throw();
  const SpectrumCache cache = SpectrumCache::open(path).take_or_throw();
  const auto error = [&](uint64_t index) -> std::string {
    try {
      cache.get(index);
    } catch (const DataError& thrown) {
      return thrown.what();
    }
    return "";
  };
  EXPECT_EQ(error(1), "");
  const std::string whole = read_bytes(path);
  // Its first record begins at byte 64, and its numbers of peaks and ids at bytes 12 and 16 of it.
  for (const size_t place : {64 + 12, 64 + 16}) {
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out)
        .seekp(static_cast<std::streamoff>(place))
        .write("\xff\xff\xff\x7f", 4);
    EXPECT_THAT(error(0),
                HasSubstr(path + ": spectrum 0 contradicts itself: the file was changed"));
    std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << whole;
  }
  std::filesystem::resize_file(path, 100);
  EXPECT_THAT(error(1), HasSubstr(path + " ends at byte "));
  EXPECT_THAT(error(1), HasSubstr("changed while it was in use"));
}

TEST(ConvertSpectra, AMistakeLeavesNoCache) {
  const ScratchFolder folder;
  const std::string path = folder / "a.spectra";
  const std::string good = folder.put("good.mgf", block("LESLIEK"));
  const std::string bad = folder.put("bad.mgf", block("LESLIEK") + "BEGIN IONS\n");
  const auto failed = convert_spectra({good, bad}, path, alphabet());
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error(), HasSubstr("bad.mgf:18: the file ends before the END IONS"));
  EXPECT_FALSE(std::filesystem::exists(path));
  const auto useless = convert_spectra({folder.put("short.mgf", block("PEPT"))}, path, alphabet());
  EXPECT_THAT(useless.error(), HasSubstr("none of the 1 spectra of"));
  EXPECT_THAT(useless.error(), HasSubstr("is of use: 1: fewer than 7 residues"));
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(folder.count(), 3) << "no temporary file is left";
}

TEST(ConvertSpectra, TellsHowFarItIs) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "BEGIN IONS\nPEPMASS=400\nCHARGE=2\nEND IONS\n";
  ConvertOptions options;
  std::vector<uint64_t> told;
  options.progress = [&](uint64_t spectra) { told.push_back(spectra); };
  EXPECT_TRUE(convert_spectra({folder.put("a.mgf", text + block("LESLIEK"))}, folder / "a.spectra",
                              alphabet(), options)
                  .ok());
  EXPECT_EQ(told, (std::vector<uint64_t>{4096}));
}

}  // namespace
}  // namespace fullbore::peptide
