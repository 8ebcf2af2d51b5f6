#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/support/paths.h"
#include "workloads/peptide/tests/spectrum_files.h"

namespace fullbore::peptide {
namespace {

using nlohmann::json;
using testing::FileContents;
using testing::gzipped;
using testing::read_file;
using testing::read_text_as;
using Texts = std::vector<std::string>;

// "0 2+ 400.5 x3 PEPTIDE": index, charges, precursor, peaks, sequence.
std::string summary_of(const Spectrum& spectrum) {
  std::string text =
      fmt::format("{} {}+ {:g} x{}", spectrum.index, fmt::join(spectrum.charges, "|"),
                  spectrum.precursor_mz, spectrum.mz.size());
  if (!spectrum.sequence.empty()) text += " " + spectrum.sequence;
  return text;
}

struct Oddity {
  std::string what;
  std::string name;
  std::string text;
  Texts spectra;
  Texts bad = {};  // "index:line: reason"
};

std::string mgf(const std::string& inside) {
  return "BEGIN IONS\nPEPMASS=400.5\nCHARGE=2+\n" + inside + "100 1\nEND IONS\n";
}
const std::string kGood = "BEGIN IONS\nPEPMASS=500\nCHARGE=3+\n200 2\nEND IONS\n";

std::string msp(const std::string& head, const std::string& peaks) {
  return head + "MW: 799.4\nComment: Parent=400.5\n" + peaks + "\n";
}

std::string doubles(const std::vector<double>& values) {
  return testing::base64(
      {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)});
}
std::string term(const std::string& accession, const std::string& value = "") {
  return "<cvParam accession=\"" + accession + "\" name=\"n\" value=\"" + value + "\"/>";
}
std::string group(const std::string& id) {
  return "<referenceableParamGroupRef ref=\"" + id + "\"/>";
}
std::string array(const std::string& terms, const std::vector<double>& values) {
  return "<binaryDataArray>" + terms + "<binary>" + doubles(values) + "</binary></binaryDataArray>";
}
const std::string kWide = "MS:1000523";
const std::string kTwoArrays = array(term("MS:1000514") + term(kWide), {100, 200}) +
                               array(term("MS:1000515") + term(kWide), {1, 2});
std::string ion(const std::string& terms) {
  return "<precursorList><precursor><selectedIonList><selectedIon>" + terms +
         "</selectedIon></selectedIonList></precursor></precursorList>";
}
const std::string kIon = ion(term("MS:1000744", "400.5") + term("MS:1000041", "2"));
std::string spectrum(const std::string& inside, const std::string& length = "2") {
  return "<spectrum id=\"scan=7\" defaultArrayLength=\"" + length + "\">" + inside +
         "</spectrum>\n";
}
std::string document(const std::string& spectra) {
  return "<mzML><referenceableParamGroupList><referenceableParamGroup id=\"ms2\">" +
         term("MS:1000511", "2") + "</referenceableParamGroup><referenceableParamGroup id=\"mz\">" +
         term("MS:1000514") + term(kWide) +
         "</referenceableParamGroup></referenceableParamGroupList>\n" + spectra + "</mzML>\n";
}
const std::string kMs2 = term("MS:1000511", "2");

Texts malformed_mgf_read() { return {"1 3+ 500 x1"}; }

std::vector<Oddity> mgf_oddities() {
  const Texts one = {"0 2+ 400.5 x1"};
  const Texts rest = malformed_mgf_read();
  return {
      {"CRLF", "a.mgf", "BEGIN IONS\r\nPEPMASS=400.5\r\nCHARGE=2+\r\n100 1\r\nEND IONS\r\n", one},
      {"byte order mark", "a.mgf", "\xEF\xBB\xBF" + mgf(""), one},
      {"tabs", "a.mgf", "BEGIN IONS\nPEPMASS=400.5\t7\nCHARGE=2+\n100\t1\t\n\tEND IONS\n", one},
      {"comments", "a.mgf", "# a\n; b\n! c\n/ d\n" + mgf("# e\n\n"), one},
      {"lowercase keys", "a.mgf", "begin ions\npepmass=400.5\ncharge=2+\n100 1\nend ions\n", one},
      {"no END IONS",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400\nCHARGE=2+\n100 1\n" + kGood,
       rest,
       {"0:5: BEGIN IONS within a spectrum: the one of line 1 has no END IONS"}},
      {"no END IONS at the end",
       "a.mgf",
       mgf("") + "BEGIN IONS\nPEPMASS=4\n",
       one,
       {"1:6: the file ends before the END IONS of this BEGIN IONS"}},
      {"END IONS alone",
       "a.mgf",
       mgf("") + "END IONS\n7 8\n" + kGood,
       {"0 2+ 400.5 x1", "1 3+ 500 x1"},
       {"1:6: END IONS without the BEGIN IONS that it ends"}},
      {"several charges by and",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5\nCHARGE=2+ and 3+\n100 1\nEND IONS\n",
       {"0 2|3+ 400.5 x1"}},
      {"several charges by comma",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5\nCHARGE=2+,3+, 4+\n100 1\nEND IONS\n",
       {"0 2|3|4+ 400.5 x1"}},
      {"no charge", "a.mgf", "BEGIN IONS\nPEPMASS=400.5\n100 1\nEND IONS\n", {"0 2|3|4+ 400.5 x1"}},
      {"charge 0",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5\nCHARGE=0+\nEND IONS\n",
       {"0 2|3|4+ 400.5 x0"}},
      {"charge of PEPMASS beside the same", "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5 10 2+\nCHARGE=2+\n100 1\nEND IONS\n", one},
      {"charge of PEPMASS without intensity", "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5 2+\n100 1\nEND IONS\n", one},
      {"charge of PEPMASS decides between several", "a.mgf",
       "BEGIN IONS\nCHARGE=2+ and 3+\nPEPMASS=400.5 10 2\n100 1\nEND IONS\n", one},
      {"charge of PEPMASS contradicts",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5 10 3+\nCHARGE=2+\n100 1\nEND IONS\n",
       {"0 2|3+ 400.5 x1"}},
      {"charge for the whole file", "a.mgf",
       "CHARGE=2+\nBEGIN IONS\nPEPMASS=400.5\n100 1\nEND IONS\n", one},
      {"the same CHARGE twice", "a.mgf", mgf("CHARGE=2\n"), one},
      {"TITLE with =", "a.mgf", mgf("TITLE=a=b, c=\"d\"\n"), one},
      {"scientific notation", "a.mgf",
       "BEGIN IONS\nPEPMASS=4.005e2 1E+06\nCHARGE=2+\n1.0E2 1e-3\nEND IONS\n", one},
      {"an empty spectrum",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=400.5\nCHARGE=2+\nEND IONS\n" + kGood,
       {"0 2+ 400.5 x0", "1 3+ 500 x1"}},
      {"the same title twice",
       "a.mgf",
       mgf("TITLE=a\n") + mgf("TITLE=a\n"),
       {"0 2+ 400.5 x1", "1 2+ 400.5 x1"}},
      {"gzip", "a.mgf", gzipped(mgf("")), one},
      {"retention range and unknown keys", "a.mgf",
       mgf("RTINSECONDS=10.5-11.5\nINSTRUMENT=x\nUSER00=y\n"), one},
      {"charges of fragments", "a.mgf", mgf("101.5 3 1+\n102.5 4\t2+\n"), {"0 2+ 400.5 x3"}},
      {"no last line end", "a.mgf", mgf("").substr(0, mgf("").size() - 1), one},
      {"negative intensity",
       "a.mgf",
       mgf("101 -3\n") + kGood,
       rest,
       {"0:4: intensity is -3, expected 0 or more"}},
      {"negative ion",
       "a.mgf",
       "BEGIN IONS\nPEPMASS=4\nCHARGE=2-\nEND IONS\n" + kGood,
       rest,
       {"0:3: CHARGE is '2-', expected a positive charge such as 2+"}},
      {"no PEPMASS",
       "a.mgf",
       "BEGIN IONS\nCHARGE=2+\n100 1\nEND IONS\n" + kGood,
       rest,
       {"0:1: the spectrum has no PEPMASS"}},
      {"a peak of words",
       "a.mgf",
       mgf("100.x 5\n101 a b\nhello\n") + kGood,
       rest,
       {"0:4: m/z is '100.x', expected a number"}},
      {"words between spectra",
       "a.mgf",
       mgf("") + "100 2\n101 3\n" + kGood,
       {"0 2+ 400.5 x1", "1 3+ 500 x1"},
       {"1:6: '100 2' stands between spectra, expected BEGIN IONS"}},
  };
}

std::vector<Oddity> msp_oddities() {
  const std::string name = "Name: PEPTIDE/2\n";
  const Texts one = {"0 2+ 400.5 x2 PEPTIDE"};
  const Texts second = {"1 2+ 400.5 x2 PEPTIDE"};
  const std::string good = msp(name, "Num peaks: 2\n100 1\n200 2\n");
  return {
      {"Num peaks", "a.msp", good, one},
      {"Num Peaks", "a.msp", msp(name, "Num Peaks: 2\n100 1\n200 2\n"), one},
      {"NumPeaks", "a.msp", msp(name, "NumPeaks: 2\n100\t1\n200\t2\n"), one},
      {"NUM PEAKS in CRLF", "a.msp",
       "NAME: PEPTIDE/2\r\nCOMMENT: Parent=400.5\r\nNUM PEAKS: 2\r\n100 1\r\n200 2\r\n\r\n", one},
      {"annotations", "a.msp", msp(name, "Num peaks: 2\n100 1 \"b1/0.1; y2\" 3\n200 2\t\"?\"\n"),
       one},
      {"semicolons", "a.msp", msp(name, "Num peaks: 2\n100 1; 200 2;\n"), one},
      {"quotes in Comment", "a.msp",
       "Name: PEPTIDE/2\nComment: \"Fullname=R.PEP TIDE.K\" Parent=\"400.5\" \"Parent2=x\"\n"
       "Num peaks: 2\n100 1\n200 2\n\n",
       one},
      {"Charge beside the name", "a.msp",
       "Name: PEPTIDE\nPrecursorMZ: 400.5\nCharge: 2\nNum peaks: 2\n100 1\n200 2\n\n", one},
      {"modifications in the name",
       "a.msp",
       msp("Name: PEPTMDE/2_1(4,M,Oxidation)\n", "Num peaks: 2\n100 1\n200 2\n"),
       {"0 2+ 400.5 x2 PEPTM[Oxidation]DE"}},
      {"other things behind the name", "a.msp",
       msp("Name: PEPTIDE/2_0_35eV\n", "Num peaks: 2\n100 1\n200 2\n"), one},
      {"no blank line between records",
       "a.msp",
       good.substr(0, good.size() - 1) + good,
       {"0 2+ 400.5 x2 PEPTIDE", "1 2+ 400.5 x2 PEPTIDE"}},
      {"no charge",
       "a.msp",
       msp("Name: PEPTIDE\n", "Num peaks: 2\n100 1\n200 2\n"),
       {"0 2|3|4+ 400.5 x2 PEPTIDE"}},
      {"too few peaks",
       "a.msp",
       msp(name, "Num peaks: 3\n100 1\n") + good,
       second,
       {"0:6: Num peaks is 3, and 1 are there"}},
      {"too many peaks",
       "a.msp",
       msp(name, "Num peaks: 1\n100 1\n200 2\n300 3\n") + good,
       second,
       {"0:6: a peak beyond the 1 of Num peaks: '200 2'"}},
      {"no Num peaks",
       "a.msp",
       "Name: AK/2\nMW: 3\n" + good,
       second,
       {"0:3: Name within the record of line 1, which has no Num peaks"}},
      {"negative intensity",
       "a.msp",
       msp(name, "Num peaks: 2\n100 1\n200 -2\n") + good,
       second,
       {"0:6: intensity is -2, expected 0 or more"}},
      {"a position beyond the peptide",
       "a.msp",
       msp("Name: PEP/2_1(5,M,Oxidation)\n", "Num peaks: 1\n100 1\n") + good,
       second,
       {"0:1: Mods names position 5 of a peptide of 3 residues"}},
      {"gzip", "a.msp.gz", gzipped(good), one},
      {"byte order mark", "a.msp", "\xEF\xBB\xBF" + good, one},
      {"no last line end", "a.msp", good.substr(0, good.size() - 2), one},
      {"tabs", "a.msp",
       "Name:\tPEPTIDE/2\nComment:\tParent=400.5\tNCE=30\nNum peaks:\t2\n100\t1\n"
       "200\t2\t\"y2\"\t1\n\n",
       one},
      {"comments and blank lines", "a.msp", "# library\n\n\n" + good + "\n# end\n", one},
      {"several peaks on each line",
       "a.msp",
       msp(name, "Num peaks: 5\n100 1; 101 2;102 3\n103\t4;\t104 5;\n"),
       {"0 2+ 400.5 x5 PEPTIDE"}},
      {"two peaks and nothing between them",
       "a.msp",
       msp(name, "Num peaks: 2\n100 1 200 2\n") + good,
       second,
       {"0:6: Num peaks is 2, and 1 are there"}},
      {"scientific notation", "a.msp", msp(name, "Num peaks: 2\n1.0e2 1E+3\n2E2 5e-05\n"), one},
      {"no peaks", "a.msp", msp(name, "Num peaks: 0\n"), {"0 2+ 400.5 x0 PEPTIDE"}},
      {"modifications of NIST",
       "a.msp",
       "Name: CEPTMDE/2_2(0,C,CAM)(4,M,Oxidation)_35eV\nMW: 799\nComment: Single Pep=Tryptic "
       "Mods=2(0,C,CAM)(4,M,Oxidation) Fullname=R.CEPTMDE.K Charge=2 Parent=400.5 "
       "Nreps=3/5 Naa=7 Inst=it \"Protein=sp|P1|X (a;b)\"\nNum peaks: 2\n"
       "100\t1\t\"b1-18/0.1,a2 3/5\"\n200\t2\t\"?;x\" 2/2\n\n",
       {"0 2+ 400.5 x2 C[Carbamidomethyl]EPTM[Oxidation]DE"}},
      {"modifications of SpectraST",
       "a.msp",
       msp("Name: n[43]CEPTM[147]DE/2\n", "NumPeaks: 2\n100 1\n200 2\n"),
       {"0 2+ 400.5 x2 n[43]CEPTM[147]DE"}},
      {"modifications of Prosit",
       "a.msp",
       "Name: PEPTMDE/2\nMW: 800.9\nComment: Parent=400.5 Collision_energy=35.0 "
       "Mods=1/4,M,Oxidation ModString=PEPTMDE//Oxidation@M5/2 iRT=-11.3\nNum peaks: 2\n"
       "100.0757\t0.32\t\"y1/0.0ppm\"\n200.1\t1.0\t\"b3^2/0.0ppm\"\n\n",
       {"0 2+ 400.5 x2 PEPTM[Oxidation]DE"}},
      {"a modified N-terminus",
       "a.msp",
       "Name: PEPTIDE/2\nComment: Parent=400.5 Mods=1/-1,P,Acetyl\nNum peaks: 1\n100 1\n\n",
       {"0 2+ 400.5 x1 [Acetyl]-PEPTIDE"}},
      {"a prediction without its zeros", "a.msp",
       "Name: PEPTIDE/2\nComment: \"MS2PIP_ID=7\" Parent=400.5\nNum peaks: 12\n100 1\n200 2\n\n",
       one},
      {"Charge as 2+", "a.msp",
       "Name: PEPTIDE\nPRECURSORMZ: 400.5\nCHARGE: 2+\nNum peaks: 2\n100 1\n200 2\n\n", one},
      {"a negative ion",
       "a.msp",
       "Name: PEPTIDE\nPrecursorMZ: 400.5\nCharge: -2\nNum peaks: 0\n\n" + good,
       second,
       {"0:3: the charge of Charge is '-2', expected a positive one such as 2"}},
      {"two charges",
       "a.msp",
       "Name: PEPTIDE/2\nPrecursorMZ: 400.5\nCharge: 3\nNum peaks: 0\n\n" + good,
       second,
       {"0:3: Charge says charge 3, which was 2 before"}},
      {"percentages",
       "a.msp",
       msp(name, "Num peaks: 2\n100 50%\n200 100%\n") + good,
       second,
       {"0:5: intensity is '50%', expected a number"}},
      {"decimal commas",
       "a.msp",
       msp(name, "Num peaks: 1\n100,5 7\n") + good,
       second,
       {"0:5: m/z is '100,5', expected a number"}},
      {"no intensity",
       "a.msp",
       msp(name, "Num peaks: 1\n100\n") + good,
       second,
       {"0:5: the peak '100' has no intensity"}},
      {"a count that is none",
       "a.msp",
       msp(name, "Num peaks: two\n") + good,
       second,
       {"0:4: Num peaks is 'two', expected a count"}},
      {"a negative count",
       "a.msp",
       msp(name, "Num peaks: -1\n") + good,
       second,
       {"0:4: Num peaks is '-1', expected a count"}},
      {"the file ends among the peaks",
       "a.msp",
       good + "Name: AK/2\nMW: 3\nNum peaks: 2\n1 1",
       one,
       {"1:8: Num peaks is 2, and 1 are there"}},
      {"the file ends before the peaks",
       "a.msp",
       good + "Name: AK/2\nMW: 3\n",
       one,
       {"1:8: the file ends before the Num peaks of this record"}},
      {"no mass",
       "a.msp",
       "Name: AK/2\nNum peaks: 1\n100 1\n\n" + good,
       second,
       {"0:1: the record has neither Parent nor PrecursorMZ nor MW"}},
      {"a mass that is none",
       "a.msp",
       "Name: AK/2\nComment: Parent=heavy\nNum peaks: 1\n100 1\n\n" + good,
       second,
       {"0:2: Parent is 'heavy', expected a number of more than 0"}},
      {"an empty name",
       "a.msp",
       "Name:\nMW: 3\nNum peaks: 1\n100 1\n\n" + good,
       second,
       {"0:1: Name is empty"}},
      {"a line that is no field",
       "a.msp",
       "Name: AK/2\nMW 3\nNum peaks: 1\n100 1\n\n" + good,
       second,
       {"0:2: 'MW 3' is no 'Field: value'"}},
      {"modifications that cannot be counted",
       "a.msp",
       "Name: AK/2\nComment: Parent=3 Mods=2/0,A,Acetyl\nNum peaks: 1\n100 1\n\n" + good,
       second,
       {"0:2: Mods is '2/0,A,Acetyl', expected a count and as many 'position,residue,name'"}},
      {"words between records",
       "a.msp",
       good + "hello\nworld\n" + good,
       {"0 2+ 400.5 x2 PEPTIDE", "1 2+ 400.5 x2 PEPTIDE"},
       {"1:8: 'hello', expected a record that begins with Name:"}},
  };
}

std::vector<Oddity> mzml_oddities() {
  const std::string good = spectrum(kMs2 + kIon + kTwoArrays);
  const Texts one = {"0 2+ 400.5 x2"};
  const Texts second = {"1 2+ 400.5 x2"};
  const std::string survey = spectrum(term("MS:1000511", "1"), "0");
  const std::string mz = term("MS:1000514"), intensity = term("MS:1000515"), wide = term(kWide);
  const std::string two = array(intensity + wide, {1, 2});
  const std::vector<double> heights = {1, 2};
  const auto text_array = [](const std::string& terms, const std::string& text) {
    return "<binaryDataArray>" + terms + "<binary>" + text + "</binary></binaryDataArray>";
  };
  const std::vector<float> narrow = {100, 200};
  const std::string narrow_text =
      testing::base64({reinterpret_cast<const char*>(narrow.data()), 2 * sizeof(float)});
  std::string wrapped = doubles({100, 200});
  wrapped.insert(7, "\n  ").insert(0, "\n\t");
  std::string utf16 = "\xFF\xFE";
  for (const char c : document(good)) utf16 += {c, '\0'};
  std::string crlf;
  for (const char c : document(good)) crlf += c == '\n' ? "\r\n" : std::string(1, c);
  return {
      {"levels are counted",
       "a.mzML",
       document(survey + good + survey + good),
       {"1 2+ 400.5 x2", "3 2+ 400.5 x2"}},
      {"indexed", "a.mzML", "<indexedmzML>" + document(good) + "<indexList/></indexedmzML>", one},
      {"gzip", "a.mzML.gz", gzipped(document(good)), one},
      {"groups of parameters", "a.mzML",
       document(spectrum(group("ms2") + kIon + array(group("mz"), {100, 200}) +
                         array(term("MS:1000515") + term(kWide), {1, 2}))),
       one},
      {"a group that is not there",
       "a.mzML",
       document(spectrum(kMs2 + group("x")) + good),
       second,
       {"0:2: no group of parameters has the id 'x'"}},
      {"no precursor",
       "a.mzML",
       document(spectrum(kMs2 + kTwoArrays) + good),
       second,
       {"0:2: it has no selected ion m/z"}},
      {"no charge",
       "a.mzML",
       document(spectrum(kMs2 + ion(term("MS:1000744", "400.5")) + kTwoArrays)),
       {"0 2|3|4+ 400.5 x2"}},
      {"possible charges",
       "a.mzML",
       document(spectrum(
           kMs2 +
           ion(term("MS:1000744", "400.5") + term("MS:1000633", "2") + term("MS:1000633", "3")) +
           kTwoArrays)),
       {"0 2|3+ 400.5 x2"}},
      {"no arrays for no peaks", "a.mzML", document(spectrum(kMs2 + kIon, "0")), {"0 2+ 400.5 x0"}},
      {"no arrays for some peaks",
       "a.mzML",
       document(spectrum(kMs2 + kIon) + good),
       second,
       {"0:2: it has no m/z array"}},
      {"another length",
       "a.mzML",
       document(spectrum(kMs2 + kIon + kTwoArrays, "3") + good),
       second,
       {"0:2: the m/z array has 2 numbers, expected 3"}},
      {"byte order mark", "a.mzML", "\xEF\xBB\xBF" + document(good), one},
      {"UTF-16", "a.mzML", utf16, one},
      {"CRLF", "a.mzML", crlf, one},
      {"a declaration, a style and comments", "a.mzML",
       "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><?xml-stylesheet href=\"x\"?><!-- "
       "<spectrum> -->" +
           document("<!-- a & b -->" + good),
       one},
      {"32 bits", "a.mzML",
       document(spectrum(kMs2 + kIon + text_array(mz + term("MS:1000521"), narrow_text) + two)),
       one},
      {"zlib", "a.mzML",
       document(
           spectrum(kMs2 + kIon +
                    text_array(mz + wide + term("MS:1000574"),
                               testing::base64(testing::deflated(
                                   {reinterpret_cast<const char*>(heights.data()), 16}, false))) +
                    two)),
       one},
      {"damaged zlib",
       "a.mzML",
       document(
           spectrum(kMs2 + kIon + text_array(mz + wide + term("MS:1000574"), "AAAAAAAA") + two) +
           good),
       second,
       {"0:2: the m/z array: its zlib data are damaged or end early"}},
      {"line breaks in base64", "a.mzML",
       document(spectrum(kMs2 + kIon + text_array(mz + wide, wrapped) + two)), one},
      {"damaged base64",
       "a.mzML",
       document(spectrum(kMs2 + kIon + text_array(mz + wide, "AA*A") + two) + good),
       second,
       {"0:2: the m/z array: character 3 of the base64 text is none of base64's"}},
      {"base64 cut short",
       "a.mzML",
       document(spectrum(kMs2 + kIon + text_array(mz + wide, "AAA") + two) + good),
       second,
       {"0:2: the m/z array: the base64 text ends within a group of four"}},
      {"intensities first", "a.mzML",
       document(spectrum(kMs2 + kIon + two + array(mz + wide, {100, 200}))), one},
      {"arrays of other things", "a.mzML",
       document(spectrum(kMs2 + kIon + array(term("MS:1000516") + wide, {7, 8, 9}) + kTwoArrays)),
       one},
      {"a length of its own", "a.mzML",
       document(spectrum(kMs2 + kIon + "<binaryDataArray arrayLength=\"2\">" + mz + wide +
                             "<binary>" + doubles({100, 200}) + "</binary></binaryDataArray>" +
                             "<binaryDataArray arrayLength=\"2\">" + intensity + wide + "<binary>" +
                             doubles({1, 2}) + "</binary></binaryDataArray>",
                         "9")),
       one},
      {"empty arrays",
       "a.mzML",
       document(spectrum(kMs2 + kIon + "<binaryDataArray>" + mz + wide +
                             "<binary/></binaryDataArray>" + text_array(intensity + wide, ""),
                         "0")),
       {"0 2+ 400.5 x0"}},
      {"two m/z arrays",
       "a.mzML",
       document(spectrum(kMs2 + kIon + array(mz + wide, {100, 200}) + kTwoArrays) + good),
       second,
       {"0:2: a second m/z array"}},
      {"no precision",
       "a.mzML",
       document(spectrum(kMs2 + kIon + array(mz, {100, 200}) + two) + good),
       second,
       {"0:2: the m/z array does not say its precision"}},
      {"integers",
       "a.mzML",
       document(spectrum(kMs2 + kIon + array(mz + term("MS:1000522"), {100, 200}) + two) + good),
       second,
       {"0:2: the m/z array is 'n', expected floats of 32 or 64 bits or MS-Numpress, plain or in "
        "zlib or zstd"}},
      {"a peak that is no number",
       "a.mzML",
       document(spectrum(kMs2 + kIon + array(mz + wide, {100, std::nan("")}) + two) + good),
       second,
       {"0:2: peak 2: m/z is nan, expected more than 0"}},
      {"the isolation window alone", "a.mzML",
       document(spectrum(
           kMs2 + "<precursorList><precursor><isolationWindow>" + term("MS:1000827", "400.5") +
           "</isolationWindow><selectedIonList><selectedIon>" + term("MS:1000041", "2") +
           "</selectedIon></selectedIonList></precursor></precursorList>" + kTwoArrays)),
       one},
      {"two selected ions", "a.mzML",
       document(spectrum(
           kMs2 + "<precursorList><precursor><selectedIonList><selectedIon>" +
           term("MS:1000744", "400.5") + term("MS:1000041", "2") + "</selectedIon><selectedIon>" +
           term("MS:1000744", "700") + term("MS:1000041", "3") +
           "</selectedIon></selectedIonList></precursor></precursorList>" + kTwoArrays)),
       one},
      {"two precursors", "a.mzML",
       document(spectrum(kMs2 + kIon + ion(term("MS:1000744", "700") + term("MS:1000041", "3")) +
                         kTwoArrays)),
       one},
      {"charge 0",
       "a.mzML",
       document(spectrum(kMs2 + ion(term("MS:1000744", "400.5") + term("MS:1000041", "0")) +
                         kTwoArrays)),
       {"0 2|3|4+ 400.5 x2"}},
      {"a negative ion",
       "a.mzML",
       document(spectrum(kMs2 + ion(term("MS:1000744", "400.5") + term("MS:1000041", "-2")) +
                         kTwoArrays) +
                good),
       second,
       {"0:2: charge state is '-2', expected a positive charge"}},
      {"a level that is none",
       "a.mzML",
       document(spectrum(term("MS:1000511", "two") + kIon + kTwoArrays) + good),
       second,
       {"0:2: n is 'two', expected a number"}},
      {"no level and the third",
       "a.mzML",
       document(spectrum(kIon + kTwoArrays) +
                spectrum(term("MS:1000511", "3") + kIon + kTwoArrays) + good),
       {"2 2+ 400.5 x2"}},
      {"chromatograms", "a.mzML",
       document(good + "<chromatogramList><chromatogram id=\"TIC\">" + kTwoArrays +
                "</chromatogram></chromatogramList>"),
       one},
      {"negative intensity",
       "a.mzML",
       document(spectrum(kMs2 + kIon + array(term("MS:1000514") + term(kWide), {100, 200}) +
                         array(term("MS:1000515") + term(kWide), {1, -2})) +
                good),
       second,
       {"0:2: peak 2: intensity is -2, expected 0 or more"}},
  };
}

void expect_read(const Oddity& oddity) {
  SCOPED_TRACE(oddity.what);
  Texts bad;
  SpectrumReadOptions options{.on_bad = BadSpectrum::try_charges};
  options.left_out = [&](const Spectrum& spectrum) {
    bad.push_back(
        fmt::format("{}:{}: {}", spectrum.index, spectrum.problem_line, spectrum.problem));
  };
  const FileContents contents = read_text_as(oddity.name, oddity.text, options);
  EXPECT_EQ(contents.error, "");
  Texts spectra;
  for (const Spectrum& each : contents.spectra) spectra.push_back(summary_of(each));
  EXPECT_EQ(spectra, oddity.spectra);
  EXPECT_EQ(bad, oddity.bad);
  // One that is bad ends the file where that is wanted.
  const FileContents strict = read_text_as(oddity.name, oddity.text, {.default_charge = 2});
  EXPECT_EQ(strict.error.empty(), oddity.bad.empty()) << strict.error;
}

TEST(SpectrumFiles, OdditiesOfMgfAreReadOrLeftOutOneByOne) {
  EXPECT_GE(mgf_oddities().size(), 30U);
  for (const Oddity& oddity : mgf_oddities()) expect_read(oddity);
}
TEST(SpectrumFiles, OdditiesOfMspAreReadOrLeftOutOneByOne) {
  EXPECT_GE(msp_oddities().size(), 30U);
  for (const Oddity& oddity : msp_oddities()) expect_read(oddity);
}
TEST(SpectrumFiles, OdditiesOfMzmlAreReadOrLeftOutOneByOne) {
  EXPECT_GE(mzml_oddities().size(), 30U);
  for (const Oddity& oddity : mzml_oddities()) expect_read(oddity);
}

TEST(SpectrumFiles, TablesLeaveOutRowByRow) {
  expect_read({"rows",
               "a.csv",
               "precursor_mz,charge,mz_array,intensity_array\n400.5,2,100 200,1 2\n"
               "heavy,2,100,1\n400.5,,100,1\n400.5,2+ and 3+,100 200,1\n400.5,2,100\n"
               "400.5,3,100,1\n",
               {"0 2+ 400.5 x2", "2 2|3|4+ 400.5 x1", "5 3+ 400.5 x1"},
               {"1:3: precursor_mz is 'heavy', expected a number of more than 0",
                "3:5: intensity_array has 1 numbers, and mz_array 2",
                "4:6: the row has 3 cells, and 4 columns are named"}});
}

TEST(SpectrumFiles, SkippingLeavesOutWhatHasNoSingleCharge) {
  int bad = 0;
  SpectrumReadOptions options{.on_bad = BadSpectrum::skip};
  options.left_out = [&](const Spectrum&) { ++bad; };
  const std::string text = "BEGIN IONS\nPEPMASS=4\nEND IONS\n" + kGood +
                           "BEGIN IONS\nPEPMASS=4\nCHARGE=2+ and 3+\nEND IONS\n";
  EXPECT_EQ(read_text_as("a.mgf", text, options).spectra.size(), 1U);
  EXPECT_EQ(bad, 2);
  options.default_charge = 2;
  EXPECT_EQ(read_text_as("a.mgf", text, options).spectra.size(), 3U);
  // A default is of spectra that state nothing; stated ones are tried.
  options.on_bad = BadSpectrum::try_charges;
  const FileContents tried = read_text_as("a.mgf", text, options);
  EXPECT_EQ(tried.spectra.at(0).charges, std::vector<int>{2});
  EXPECT_EQ(tried.spectra.at(2).charges, (std::vector<int>{2, 3}));
}

// workloads/peptide/tests/golden/spectrum_files.py: what pyteomics and psims write, and pyteomics reads.
TEST(SpectrumFiles, WhatOtherToolsWriteIsReadAsTheyReadIt) {
  const std::string folder = fullbore::testing::source_folder() + "/workloads/peptide/tests/data/";
  const json written = json::parse(fullbore::read_file(folder + "written.json").take_or_throw());
  ASSERT_EQ(written.size(), 4U);
  for (const auto& [name, expected] : written.items()) {
    SCOPED_TRACE(name);
    Texts bad;
    SpectrumReadOptions options{.on_bad = BadSpectrum::try_charges};
    options.left_out = [&](const Spectrum& spectrum) { bad.push_back(spectrum.problem); };
    const FileContents contents = read_file(folder + name, options);
    EXPECT_EQ(contents.error, "");
    size_t next = 0;
    for (const json& each : expected) {
      if (each["precursor_mz"].is_null()) continue;
      ASSERT_LT(next, contents.spectra.size());
      const Spectrum& found = contents.spectra[next++];
      EXPECT_EQ(found.index, each["index"].get<uint64_t>());
      EXPECT_EQ(found.native_id, each["id"].get<std::string>());
      EXPECT_EQ(found.is_profile, each["profile"].get<bool>());
      EXPECT_NEAR(found.retention_seconds, each["seconds"].get<double>(), 1e-9);
      EXPECT_EQ(found.precursor_mz, each["precursor_mz"].get<double>());
      const auto charges = each["charges"].get<std::vector<int>>();
      EXPECT_EQ(found.charges, charges.empty() ? std::vector<int>({2, 3, 4}) : charges);
      if (found.is_profile) {
        // Three Gaussians, of which pyteomics has the samples.
        ASSERT_EQ(found.mz.size(), 3U);
        for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found.mz[i], 200.1 + 100.1 * double(i), 1e-4);
        continue;
      }
      const auto mz = each["mz"].get<std::vector<double>>();
      const auto intensity = each["intensity"].get<std::vector<double>>();
      ASSERT_EQ(found.mz.size(), mz.size());
      for (size_t i = 0; i < mz.size(); ++i) {
        EXPECT_NEAR(found.mz[i], mz[i], 1e-9);
        EXPECT_NEAR(double{found.intensity[i]}, intensity[i], 1e-4);
      }
    }
    EXPECT_EQ(next, contents.spectra.size());
    const bool is_mzml = name.ends_with("mzML");
    EXPECT_EQ(bad, is_mzml ? Texts{"it has no selected ion m/z"} : Texts{});
  }
}

}  // namespace
}  // namespace fullbore::peptide
