#include "workloads/peptide/predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>

#include "fullbore/base/files.h"
#include "tests/support/faulty_files.h"
#include "tests/support/scratch_folder.h"
#include "workloads/peptide/assign_predictions.h"
#include "workloads/peptide/modifications.h"

namespace fullbore::peptide {
namespace {

using fullbore::testing::FaultyFiles;
using ::testing::HasSubstr;

std::vector<SpectrumName> named_by_index(size_t count) {
  std::vector<SpectrumName> names(count);
  for (size_t i = 0; i < count; ++i) names[i].index = i;
  return names;
}

class Predictions : public ::testing::Test {
 protected:
  Result<PredictionFile> read(const std::string& contents) {
    return read_predictions(folder_.put("predictions", contents));
  }
  /// The message, of which the path is left out.
  std::string error(const std::string& contents) {
    const Result<PredictionFile> file = read(contents);
    return file.ok() ? "none" : replace_path(file.error());
  }
  std::string replace_path(std::string text) {
    const std::string path = folder_ / "predictions";
    const size_t at = text.find(path);
    return at == std::string::npos ? text : text.replace(at, path.size(), "FILE");
  }
  std::string write(PredictionFormat format) {
    const std::string path = folder_ / "written";
    Result<PredictionWriter> writer = PredictionWriter::create(path, format, alphabet_, source_);
    EXPECT_TRUE(writer.ok());
    EXPECT_TRUE(write_all(writer.value()).ok());
    return path;
  }
  Status write_all(PredictionWriter& writer) {
    const std::vector<int32_t> modified = alphabet_.ids("+42.011AM+15.995K").take_or_throw();
    const std::vector<int32_t> plain = alphabet_.ids("PEPTIDE").take_or_throw();
    const double scores[] = {0.9, 0.8, 0.7, 0.6};
    const int tried[] = {2, 3};
    writer.describe_run(
        {"[MS, MS:1000584, mzML format, ]", "[MS, MS:1000768, Thermo nativeID format, ]"});
    Status status =
        writer.write({"index=0", "a \"b\", c", modified, 0.75, scores, 2, 210.5, 61.5, tried});
    if (status.ok()) status = writer.write({"index=1", "", plain, -1.5, {}, 2, 400.687240});
    if (status.ok()) status = writer.write({"index=2", "", {}, std::nan(""), {}, 3, 500});
    return status.ok() ? writer.commit() : status;
  }

  const fullbore::testing::ScratchFolder folder_;
  const ResidueAlphabet alphabet_{MassTable::reference, massive_kb_modifications()};
  const PredictionSource source_{"spectra/my file.mgf", "Fullbore", "0.1.0", {{"run", "x\ty"}}};
};

TEST_F(Predictions, MztabHasWhatTheStandardAsksFor) {
  const std::string text = read_file(write(PredictionFormat::mztab)).take_or_throw();
  for (const char* line :
       {"MTD\tmzTab-version\t1.0.0\n", "MTD\tmzTab-mode\tSummary\n",
        "MTD\tmzTab-type\tIdentification\n", "MTD\tsoftware[1]\t[, , Fullbore, 0.1.0]\n",
        "MTD\tsoftware[1]-setting[1]\trun = x y\n",
        "MTD\tpsm_search_engine_score[1]\t[MS, MS:1001143, search engine specific score for PSMs, "
        "]\n",
        "MTD\tvariable_mod[1]-site\tC\n", "[UNIMOD, UNIMOD:35, Oxidation, ]",
        "[CHEMMOD, CHEMMOD:+25.9793, , ]", "ms_run[1]-format\t[MS, MS:1000584, mzML format, ]\n",
        "ms_run[1]-id_format\t[MS, MS:1000768, Thermo nativeID format, ]\n",
        "/spectra/my%20file.mgf\n"})
    EXPECT_THAT(text, HasSubstr(line));
  const size_t header = text.find("\nPSH\t");
  ASSERT_NE(header, std::string::npos);
  std::vector<std::string> lines;
  for (size_t begin = header + 1; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(lines.back().starts_with(kMztabChecksum));
  lines.pop_back();
  for (const std::string& line : lines)
    EXPECT_EQ(std::count(line.begin(), line.end(), '\t'), 21) << line;
  EXPECT_THAT(lines[1],
              HasSubstr("PSM\tAMK\t1\tnull\tnull\tnull\tnull\t[, , Fullbore, 0.1.0]\t0.75\t"
                        "0-UNIMOD:1,2-UNIMOD:35\t61.5\t2\t210.5\t"));
  EXPECT_THAT(lines[1], HasSubstr("\tms_run[1]:index=0\tnull\tnull\tnull\tnull\t"
                                  "0.90000,0.80000,0.70000,0.60000\t[+42.0106]-AM[+15.9949]K\t"
                                  "2|3"));
  EXPECT_THAT(lines[3], HasSubstr("PSM\tnull\t3\t"));
}

TEST_F(Predictions, WhatIsWrittenIsRead) {
  for (const PredictionFormat format : {PredictionFormat::mztab, PredictionFormat::csv}) {
    const PredictionFile file = read_predictions(write(format)).take_or_throw();
    EXPECT_EQ(file.format, format);
    ASSERT_EQ(file.predictions.size(), 3U);
    const std::vector<SpectrumName> spectra = named_by_index(3);
    const AssignedPredictions assigned = assign_predictions(file, spectra);
    for (size_t i = 0; i < 3; ++i) ASSERT_EQ(assigned.of_spectrum[i], &file.predictions[i]);
    const auto ids = [&](size_t i) {
      return prediction_ids(file, file.predictions[i], alphabet_).take_or_throw();
    };
    EXPECT_EQ(alphabet_.text(ids(0)), "+42.011AM+15.995K");
    EXPECT_EQ(alphabet_.text(ids(1)), "PEPTIDE");
    EXPECT_TRUE(ids(2).empty());
    EXPECT_EQ(file.predictions[0].score, 0.75);
    EXPECT_EQ(file.predictions[1].score, -1.5);
    EXPECT_TRUE(std::isnan(file.predictions[2].score));
    EXPECT_EQ(file.predictions[1].precursor_mz, 400.687240);
    EXPECT_EQ(file.predictions[2].precursor_charge, 3);
  }
}

TEST_F(Predictions, ChangedMztabIsRefused) {
  const std::string path = write(PredictionFormat::mztab);
  const std::string whole = read_file(path).take_or_throw();
  const auto refusal = [&](const std::string& text) {
    const Result<PredictionFile> read = read_predictions(folder_.put("changed.mztab", text));
    return read.ok() ? std::string("read") : read.error();
  };
  EXPECT_EQ(refusal(whole), "read");
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t at = 0; at < last; at += 7) {
    std::string changed = whole;
    changed[at] ^= 1;
    EXPECT_NE(refusal(changed), "read") << at;
    EXPECT_NE(refusal(whole.substr(0, at)), "read") << at;
  }
  for (size_t begin = 0; begin < last;) {
    const size_t end = whole.find('\n', begin) + 1;
    EXPECT_NE(refusal(whole.substr(0, begin) + whole.substr(end)), "read") << begin;
    EXPECT_NE(refusal(whole.substr(0, end) + whole.substr(begin)), "read") << begin;
    begin = end;
  }
  EXPECT_THAT(refusal(whole.substr(0, last)), HasSubstr("the line with its checksum is missing"));
  EXPECT_THAT(refusal(whole + "PSM\n"), HasSubstr("a line behind its checksum"));
  // As its message says: without its comments it is as any other tool's.
  std::string plain;
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = whole.find('\n', begin) + 1;
    if (!whole.substr(begin).starts_with("COM")) plain += whole.substr(begin, end - begin);
    begin = end;
  }
  EXPECT_EQ(refusal(plain), "read");
}

// mzTab names spectra by the ids of the file itself; of two controllers' scan 17, each is its own.
TEST_F(Predictions, NativeIdsAndIndexesAreThoseOfTheFile) {
  const PredictionFile file = read(
                                  "spectrum_id,sequence,score\n"
                                  "controllerType=0 controllerNumber=1 scan=17,GAG,0.5\n"
                                  "controllerType=5 controllerNumber=1 scan=17,AAA,0.6\n"
                                  "index=4,KKK,0.7\n")
                                  .take_or_throw();
  const std::vector<SpectrumName> spectra{{"17", "controllerType=5 controllerNumber=1 scan=17", 1},
                                          {"17", "controllerType=0 controllerNumber=1 scan=17", 2},
                                          {"19", "controllerType=0 controllerNumber=1 scan=19", 4}};
  const AssignedPredictions assigned = assign_predictions(file, spectra);
  EXPECT_EQ(assigned.of_spectrum[0], &file.predictions[1]);
  EXPECT_EQ(assigned.of_spectrum[1], &file.predictions[0]);
  EXPECT_EQ(assigned.of_spectrum[2], &file.predictions[2]);
}

TEST_F(Predictions, ModificationsHaveTheRecordsOfUnimod) {
  const auto record = [](double mass, char letter, bool terminal) {
    const auto found = unimod_record(mass, letter, terminal);
    return found ? found->record : 0;
  };
  EXPECT_EQ(record(57.021464, 'C', false), 4);
  EXPECT_EQ(record(0.984016, 'N', false), 7);
  EXPECT_EQ(record(42.010565, 'A', true), 1);
  EXPECT_EQ(record(43.005814, 'A', true), 5);
  EXPECT_EQ(record(-17.026549, 'Q', true), 28);
  EXPECT_EQ(record(-17.026549, 'C', true), 385);
  EXPECT_EQ(record(25.979265, 'Q', true), 0) << "two modifications in one";
}

TEST_F(Predictions, CalculatedMassToCharge) {
  const std::string text = read_file(write(PredictionFormat::csv)).take_or_throw();
  EXPECT_THAT(text, HasSubstr("index=1,,PEPTIDE,-1.5,,2,400.68724,400.68724"));
  EXPECT_THAT(text, HasSubstr("index=0,\"a \"\"b\"\", c\",[+42.0106]-AM[+15.9949]K,0.75,"
                              "\"0.90000,0.80000,0.70000,0.60000\",2,210.5,"));
}

TEST_F(Predictions, AFailingDiskLeavesTheOldFile) {
  const std::string path = folder_.put("kept", "old");
  int failures = 0;
  for (const bool is_killed : {false, true}) {
    for (int operation = 0;; ++operation) {
      FaultyFiles files;
      is_killed ? files.kill_at(operation) : files.fail_at(operation, ENOSPC);
      bool ok = false;
      {
        Result<PredictionWriter> writer =
            PredictionWriter::create(path, PredictionFormat::mztab, alphabet_, source_, files);
        ok = writer.ok() && write_all(writer.value()).ok();
      }
      const std::string found = read_file(path).take_or_throw();
      EXPECT_TRUE(found == "old" || found.ends_with("\n")) << found;
      if (!ok) ++failures;
      if (ok && files.operations() <= operation) break;
      folder_.put("kept", "old");
    }
  }
  EXPECT_GT(failures, 8);
}

TEST_F(Predictions, TheFormatIsThatOfTheName) {
  EXPECT_EQ(prediction_format("a/b.mzTab"), PredictionFormat::mztab);
  EXPECT_EQ(prediction_format("b.csv"), PredictionFormat::csv);
  EXPECT_FALSE(prediction_format("b.mgf"));
}

// As Casanovo 4 and 5 write it: sequences with masses, or without beside ProForma.
TEST_F(Predictions, Casanovo) {
  const PredictionFile four =
      read(
          "MTD\tdescription\tCasanovo \"quoted\" text\n"
          "PSH\tsequence\tPSM_ID\taccession\tunique\tdatabase\tdatabase_version\tsearch_engine\t"
          "search_engine_score[1]\tmodifications\tretention_time\tcharge\texp_mass_to_charge\t"
          "calc_mass_to_charge\tspectra_ref\tpre\tpost\tstart\tend\topt_ms_run[1]_aa_scores\n"
          "PSM\tLLC+57.021K\t1\tnull\tnull\tnull\tnull\t[MS, MS:1003281, Casanovo, "
          "4.0.0]\t0.98\tnull\t"
          "null\t2.0\t300.5\t300.4\tms_run[1]:index=1\tnull\tnull\tnull\tnull\t0.9,0.9,0.9,0.9\n")
          .take_or_throw();
  EXPECT_EQ(four.predictions[0].sequence, "LLC+57.021K");
  EXPECT_EQ(four.predictions[0].precursor_charge, 2);
  EXPECT_EQ(four.score_column, "search_engine_score[1]");
  const PredictionFile five = read(
                                  "PSH\tsequence\tsearch_engine_score[1]\tspectra_ref\t"
                                  "opt_global_cv_MS:1003169_proforma_peptidoform_sequence\r\n"
                                  "PSM\tLLCK\t0.98\tms_run[1]:scan=17\tLLC[Carbamidomethyl]K\r\n")
                                  .take_or_throw();
  for (const PredictionFile* file : {&four, &five})
    EXPECT_EQ(
        alphabet_.text(prediction_ids(*file, file->predictions[0], alphabet_).take_or_throw()),
        "LLC+57.021K");
  const std::vector<SpectrumName> spectra{{"3", "", 0},
                                          {"controllerType=0 controllerNumber=1 scan=17", "", 1}};
  EXPECT_EQ(assign_predictions(five, spectra).of_spectrum[1], &five.predictions[0]);
  EXPECT_EQ(assign_predictions(four, spectra).of_spectrum[1], &four.predictions[0]);
}

TEST_F(Predictions, InstaNovo) {
  const PredictionFile file =
      read(
          "experiment_name,scan_number,spectrum_id,precursor_mz,precursor_charge,prediction_id,"
          "sequence,"
          "predictions,log_probs,predictions_tokenised\n"
          "yeast,17,yeast:17,419.3,2,0,TRUTH,MC[UNIMOD:4]K,-3.69,\"M, C[UNIMOD:4], K\"\n"
          "yeast,18,yeast:18,419.3,2,1,TRUTH,,-inf,\n")
          .take_or_throw();
  EXPECT_EQ(file.sequence_column, "predictions");
  EXPECT_EQ(alphabet_.text(prediction_ids(file, file.predictions[0], alphabet_).take_or_throw()),
            "MC+57.021K");
  EXPECT_TRUE(std::isinf(file.predictions[1].score));
  const std::vector<SpectrumName> scans{{"18", "x", 0}, {"17", "y", 1}};
  EXPECT_EQ(assign_predictions(file, scans).of_spectrum[1], &file.predictions[0]);
  std::vector<SpectrumName> indices = named_by_index(19);  // no scans: InstaNovo counted spectra
  const AssignedPredictions assigned = assign_predictions(file, indices);
  EXPECT_EQ(assigned.of_spectrum[18], &file.predictions[1]);
  EXPECT_EQ(assigned.unused, 0U);
  indices[2].title = "yeast:17";  // titles: then their numbers are no indices
  const AssignedPredictions named = assign_predictions(file, indices);
  EXPECT_EQ(named.of_spectrum[2], &file.predictions[0]);
  EXPECT_EQ(named.of_spectrum[17], nullptr);
  EXPECT_EQ(named.unused, 1U);
}

TEST_F(Predictions, AnyTable) {
  for (const char separator : {',', '\t', ';'}) {
    std::string text = "Spectrum_ID|Sequence|Score\n\"a, b\"|PEPTIDE|0.5\nc|GAG|\n\n";
    std::replace(text.begin(), text.end(), '|', separator);
    const PredictionFile file = read(text).take_or_throw();
    ASSERT_EQ(file.predictions.size(), 2U);
    EXPECT_EQ(file.predictions[0].spectrum, "a, b");
    EXPECT_EQ(file.predictions[1].line, 3U);
    EXPECT_TRUE(std::isnan(file.predictions[1].score));
  }
  EXPECT_EQ(read("spectrum_id,sequence\na,GAG\n").take_or_throw().score_column, "");
}

TEST_F(Predictions, TheBestOfASpectrumCounts) {
  const PredictionFile file =
      read("index,sequence,score\n1,GAG,0.2\n1,GGG,0.4\n1,AAA,0.4\n0,KKK,\n").take_or_throw();
  const AssignedPredictions assigned = assign_predictions(file, named_by_index(3));
  EXPECT_EQ(assigned.of_spectrum[1], &file.predictions[1]);
  EXPECT_EQ(assigned.of_spectrum[0], &file.predictions[3]);
  EXPECT_EQ(assigned.of_spectrum[2], nullptr);
  EXPECT_EQ(assigned.unused, 2U);
}

TEST_F(Predictions, MalformedFilesAreRefusedWithLineAndField) {
  const std::string head = "spectrum_id,sequence,score,charge,precursor_mz\n";
  EXPECT_EQ(error(head + "a,GAG,0.5,2\n"), "FILE:2: the row has 4 cells, and 5 columns are named");
  EXPECT_EQ(error(head + "a,GAG,high,2,300\n"), "FILE:2: score is 'high', expected a number");
  EXPECT_EQ(error(head + "a,GAG,nan,2,300\n"), "FILE:2: score is 'nan', expected a number");
  EXPECT_EQ(error(head + "\na,GAG,1,2.5,300\n"),
            "FILE:3: charge is '2.5', expected a positive whole charge");
  EXPECT_EQ(error(head + "a,GAG,1,2,0\n"), "FILE:2: precursor_mz is '0', expected more than 0");
  EXPECT_EQ(error(head + "a,GAG,1,2,-inf\n"), "FILE:2: precursor_mz is '-inf', expected a number");
  EXPECT_EQ(error(head + ",GAG,1,2,300\n"),
            "FILE:2: spectrum_id is '', expected what names a spectrum");
  EXPECT_EQ(error(head + "\"a,GAG,1,2,300\n"), "FILE:2: a quote does not end");
  EXPECT_THAT(error(head + "\"a\"b,GAG,1,2,300\n"), HasSubstr("FILE:2: text follows the end"));
  EXPECT_EQ(error("spectrum_id,sequence,Sequence\n"), "FILE:1: two columns are named 'Sequence'");
  EXPECT_THAT(error("spectrum_id,sequense\na,b\n"),
              HasSubstr("FILE:1: no column has the sequence: expected one of "));
  EXPECT_THAT(error("spectrum_id,sequense\na,b\n"), HasSubstr("Did you mean 'sequense'?"));
  EXPECT_THAT(error("sequence\nGAG\n"), HasSubstr("no column has the spectrum"));
  EXPECT_THAT(error(head), HasSubstr("FILE: no predictions: there is nothing below the names"));
  EXPECT_THAT(error("\n\n"), HasSubstr("FILE: no predictions: the file is empty"));
  EXPECT_THAT(error("MTD\ta\tb\n"), HasSubstr("FILE: no predictions: there is no line PSH"));
  EXPECT_THAT(error("MTD\ta\tb\nPSM\tGAG\n"), HasSubstr("FILE:2: a line PSM before PSH"));
  EXPECT_THAT(error("PSH\tsequence\tspectra_ref\nPSH\tsequence\tspectra_ref\n"),
              HasSubstr("FILE:2: a second line PSH"));
  EXPECT_THAT(error("PSH\tsequence\tspectra_ref\nPSX\tGAG\ta\n"),
              HasSubstr("FILE:2: the line begins with 'PSX', expected one of"));
  EXPECT_FALSE(read_predictions(folder_ / "missing").ok());
}

TEST_F(Predictions, WhatTheAlphabetLacksIsNamed) {
  const PredictionFile file =
      read("spectrum_id,sequence\na,GAS[UNIMOD:21]K\nb,GJG\nc,GA(\n").take_or_throw();
  const char* const expected[] = {"FILE:2: sequence: 'GAS[UNIMOD:21]K': ",
                                  "FILE:3: sequence: 'GJG': ", "FILE:4: sequence: 'GA(': "};
  for (size_t i = 0; i < 3; ++i) {
    const auto ids = prediction_ids(file, file.predictions[i], alphabet_);
    ASSERT_FALSE(ids.ok());
    EXPECT_THAT(replace_path(ids.error()), HasSubstr(expected[i]));
  }
}

}  // namespace
}  // namespace fullbore::peptide
