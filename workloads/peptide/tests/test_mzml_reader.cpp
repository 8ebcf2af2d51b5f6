#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using testing::base64;
using testing::deflated;
using ::testing::ElementsAre;
using testing::FileContents;
using testing::gzipped;
using ::testing::HasSubstr;
using testing::read_text_as;

template <class T>
std::string encoded(const std::vector<double>& values, bool compressed) {
  std::string bytes;
  for (const double value : values) {
    const T narrow = static_cast<T>(value);
    bytes.append(reinterpret_cast<const char*>(&narrow), sizeof(narrow));
  }
  return base64(compressed ? deflated(bytes, false) : bytes);
}

std::string term(const std::string& accession, const std::string& value = "",
                 const std::string& more = "") {
  return "<cvParam cvRef=\"MS\" accession=\"" + accession + "\" name=\"n\" value=\"" + value +
         "\" " + more + "/>";
}

std::string array(const std::string& kind, const std::string& terms, const std::string& text) {
  return "<binaryDataArray encodedLength=\"0\">" + terms + term(kind) + "<binary>" + text +
         "</binary></binaryDataArray>";
}
const std::string kMz = "MS:1000514";
const std::string kIntensity = "MS:1000515";

const std::string kIon =
    term("MS:1000744", "400.5") + term("MS:1000041", "2") + term("MS:1000042", "7");

struct SpectrumText {
  std::string level = "2";
  std::string ion = kIon;
  std::string arrays =
      array(kMz, term("MS:1000523"), encoded<double>({100.25, 200.5}, false)) +
      array(kIntensity, term("MS:1000521") + term("MS:1000574"), encoded<float>({1, 2}, true));
  std::string length = "2";

  std::string text() const {
    return "<spectrum index=\"0\" id=\"controllerType=0 scan=17\" defaultArrayLength=\"" + length +
           "\">" + term("MS:1000511", level) + "<scanList><scan>" +
           term("MS:1000016", "1.5", "unitAccession=\"UO:0000031\"") +
           "</scan></scanList><precursorList><precursor><isolationWindow>" +
           term("MS:1000827", "399") + "</isolationWindow><selectedIonList><selectedIon>" + ion +
           "</selectedIon></selectedIonList></precursor></precursorList><binaryDataArrayList>" +
           arrays + "</binaryDataArrayList></spectrum>\n";
  }
};

std::string document(const std::string& spectra, const std::string& ahead = "") {
  return "<?xml version=\"1.0\"?>\n<mzML xmlns=\"http://psi.hupo.org/ms/mzml\">" + ahead +
         "<run><spectrumList>\n" + spectra + "</spectrumList></run></mzML>\n";
}

std::string error_of(const SpectrumText& spectrum) {
  return read_text_as("a.mzML", document(spectrum.text())).error;
}

void expect_one(const FileContents& contents) {
  EXPECT_EQ(contents.error, "");
  ASSERT_EQ(contents.spectra.size(), 1U);
  const Spectrum& spectrum = contents.spectra[0];
  EXPECT_EQ(spectrum.title, "controllerType=0 scan=17");
  EXPECT_EQ(spectrum.scan, "17");
  EXPECT_EQ(spectrum.retention_seconds, 90);
  EXPECT_EQ(spectrum.precursor_mz, 400.5);
  EXPECT_EQ(spectrum.precursor_intensity, 7);
  EXPECT_EQ(spectrum.precursor_charge, 2);
  EXPECT_THAT(spectrum.mz, ElementsAre(100.25, 200.5));
  EXPECT_THAT(spectrum.intensity, ElementsAre(1, 2));
}

TEST(MzmlReader, ReadsSpectraOfTheSecondLevel) {
  SpectrumText survey;
  survey.level = "1";
  survey.ion = "";
  survey.arrays = "";
  SpectrumText third;
  third.level = "3";
  const std::string text = document(survey.text() + SpectrumText().text() + third.text());
  expect_one(read_text_as("a.mzML", text));
  expect_one(read_text_as("a.mzML.gz", gzipped(text)));
  const std::string indexed = "<indexedmzML>" + text.substr(text.find("<mzML")) +
                              "<indexList><index name=\"spectrum\"/></indexList></indexedmzML>";
  expect_one(read_text_as("a.mzML", indexed));
}

TEST(MzmlReader, ReadsAllEncodings) {
  for (const bool compressed : {false, true}) {
    for (const bool wide : {false, true}) {
      const std::string terms =
          term(wide ? "MS:1000523" : "MS:1000521") + term(compressed ? "MS:1000574" : "MS:1000576");
      const auto encode = [&](const std::vector<double>& values) {
        return wide ? encoded<double>(values, compressed) : encoded<float>(values, compressed);
      };
      SpectrumText spectrum;
      spectrum.arrays = array(kMz, terms, "\n " + encode({100.25, 200.5}) + "\n") +
                        array(kIntensity, terms, encode({1, 2})) +
                        array("MS:1000516", term("MS:1000519"), "AAAA");  // charges are not read
      expect_one(read_text_as("a.mzML", document(spectrum.text())));
    }
  }
}

TEST(MzmlReader, NumpressMayBeNamedBesideZlibAndWithoutAPrecision) {
  // The integers 1 and 2.
  const std::string packed = base64(deflated("\x71\x72", false));
  const std::string mz = array(kMz, term("MS:1000523"), encoded<double>({100.25, 200.5}, false));
  for (const std::string& terms : {term("MS:1002747"), term("MS:1000574") + term("MS:1002313"),
                                   term("MS:1000523") + term("MS:1002747")}) {
    SpectrumText spectrum;
    spectrum.arrays = mz + array(kIntensity, terms, packed);
    expect_one(read_text_as("a.mzML", document(spectrum.text())));
  }
}

TEST(MzmlReader, GroupsOfParametersCount) {
  SpectrumText spectrum;
  spectrum.arrays = array(kMz, "<referenceableParamGroupRef ref=\"wide\"/>",
                          encoded<double>({100.25, 200.5}, false)) +
                    array(kIntensity, "<referenceableParamGroupRef ref=\"wide\"/>",
                          encoded<double>({1, 2}, false));
  const std::string group =
      "<referenceableParamGroupList count=\"1\"><referenceableParamGroup "
      "id=\"wide\">" +
      term("MS:1000523") + "</referenceableParamGroup></referenceableParamGroupList>";
  expect_one(read_text_as("a.mzML", document(spectrum.text(), group)));
  EXPECT_THAT(read_text_as("a.mzML", document(spectrum.text())).error,
              HasSubstr("no group of parameters has the id 'wide'"));
}

TEST(MzmlReader, ManySpectraAndPiecesAreRead) {
  std::string spectra;
  for (int i = 0; i < 500; ++i) spectra += SpectrumText().text();
  EXPECT_EQ(read_text_as("a.mzML", document(spectra)).spectra.size(), 500U);
}

TEST(MzmlReader, AnIonWithoutMassTakesTheWindows) {
  SpectrumText spectrum;
  spectrum.ion = term("MS:1000041", "2");
  EXPECT_EQ(read_text_as("a.mzML", document(spectrum.text())).spectra.at(0).precursor_mz, 399);
}

TEST(MzmlReader, AMissingChargeIsAnErrorUnlessThereIsADefault) {
  SpectrumText spectrum;
  spectrum.ion = term("MS:1000744", "400.5");
  EXPECT_EQ(
      error_of(spectrum),
      "a.mzML:3: spectrum 'controllerType=0 scan=17': the spectrum has no charge, and no default "
      "is given");
  const FileContents contents =
      read_text_as("a.mzML", document(spectrum.text()), {.default_charge = 2});
  EXPECT_EQ(contents.spectra.at(0).precursor_charge, 2);
}

TEST(MzmlReader, ATagWithoutEndIsRefusedEarly) {
  const std::string endless(size_t{40} << 20, 'x');
  for (const std::string& tag : {"<run id=\"" + endless, "<!--" + endless, "<" + endless}) {
    const FileContents contents = read_text_as("a.mzML", "<mzML>" + tag);
    EXPECT_THAT(contents.error,
                HasSubstr("a.mzML:1: a tag or comment is longer than 1048576 bytes"));
  }
}

TEST(MzmlReader, RefusesWhatIsMalformed) {
  const auto with_arrays = [](const std::string& arrays) {
    SpectrumText spectrum;
    spectrum.arrays = arrays;
    return error_of(spectrum);
  };
  const std::string wide = term("MS:1000523");
  const std::string two = encoded<double>({1, 2}, false);
  EXPECT_THAT(with_arrays(""), HasSubstr("scan=17': it has no m/z array"));
  EXPECT_THAT(with_arrays(array(kMz, wide, two)), HasSubstr("it has no intensity array"));
  EXPECT_THAT(with_arrays(array(kMz, "", two)),
              HasSubstr("the m/z array does not say its precision"));
  EXPECT_THAT(with_arrays(array(kMz, wide, "?" + two)),
              HasSubstr("character 1 of the base64 text"));
  EXPECT_THAT(with_arrays(array(kMz, wide, encoded<double>({1, 2, 3}, false) + "A")),
              HasSubstr("ends within a group of four"));
  EXPECT_THAT(with_arrays(array(kMz, wide, base64("four"))),
              HasSubstr("has 4 bytes, no multiple of 8"));
  EXPECT_THAT(with_arrays(array(kMz, wide + term("MS:1000574"), base64("no zlib"))),
              HasSubstr("its zlib data are damaged"));
  const std::string packed = deflated(std::string(1000, 'x'), false);
  EXPECT_THAT(with_arrays(array(kMz, wide + term("MS:1000574"),
                                base64(packed.substr(0, packed.size() - 6)))),
              HasSubstr("damaged or end early"));
  EXPECT_THAT(with_arrays(array(kMz, wide + term("MS:1003089"), two)),
              HasSubstr("the m/z array is 'n', expected floats of 32 or 64 bits or MS-Numpress, "
                        "plain or in zlib or zstd"));
  EXPECT_THAT(with_arrays(array(kMz, term("MS:1002312"), base64("four"))),
              HasSubstr("the m/z array: has 4 bytes of MS-Numpress, expected a fixed point of 8"));
  EXPECT_THAT(with_arrays(array(kMz, wide, encoded<double>({1}, false))),
              HasSubstr("the m/z array has 1 numbers, expected 2"));
  EXPECT_THAT(with_arrays(array(kMz, wide, two) + array(kMz, wide, two)),
              HasSubstr("a second m/z array"));
  EXPECT_THAT(
      with_arrays(array(kMz, wide, encoded<double>({0, 2}, false)) + array(kIntensity, wide, two)),
      HasSubstr("peak 1: m/z is 0, expected more than 0"));
  SpectrumText spectrum;
  spectrum.ion = term("MS:1000744", "400.5") + term("MS:1000041", "-2");
  EXPECT_THAT(error_of(spectrum), HasSubstr("charge state is '-2', expected a positive charge"));
  spectrum.ion = term("MS:1000744", "heavy");
  EXPECT_THAT(error_of(spectrum), HasSubstr("n is 'heavy', expected a number"));
  EXPECT_THAT(read_text_as("a.mzML", "<html></html>").error,
              HasSubstr("a.mzML:1: the root element is <html>, expected <mzML>"));
  EXPECT_THAT(read_text_as("a.mzML", "<mzML><run>").error, HasSubstr("a.mzML:1: no element found"));
  EXPECT_THAT(read_text_as("a.mzML", "<mzML></run>").error, HasSubstr("mismatched tag"));
  EXPECT_THAT(read_text_as("a.mzML", "<!DOCTYPE x [<!ENTITY a \"b\">]><mzML>&a;</mzML>").error,
              HasSubstr("declares the entity 'a'"));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "<a>";
  EXPECT_THAT(read_text_as("a.mzML", "<mzML>" + deep).error, HasSubstr("nested too deep"));
  const std::string text = document(SpectrumText().text());
  EXPECT_THAT(read_text_as("a.mzML", text.substr(0, text.size() / 2)).error,
              HasSubstr("a.mzML:3: "));
}

}  // namespace
}  // namespace fullbore::peptide
