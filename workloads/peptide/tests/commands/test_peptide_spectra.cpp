#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kConfig =
    "data: {min_length: 5, max_length: 6, validation_spectra: 0, min_peaks: 5, modifications: []}\n"
    "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
    "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 2,\n"
    "  num_latent_steps: 1, dropout: 0}\n"
    "optim: {schedule: constant, warmup_steps: 0}\n"
    "train: {steps: 1, batch_size: 4,\n"
    "  curriculum_stages: [{steps: 2, max_length: 5, name: first}, {steps: 3, noise_peaks: 2,\n"
    "  max_length: 6, name: second}]}\n"
    "log: {interval: 1}\n";

const std::string kPeaks =
    "98.06 1\n227.103 2\n324.155 3\n425.203 2\n90.055 4\n191.103 5\n288.155 6\n417.198 7\n";

std::string block(const std::string& fields, const std::string& peaks = kPeaks) {
  return "BEGIN IONS\n" + fields + peaks + "END IONS\n";
}

/// A good spectrum of PEPTA, and one that is bad in each way.
const std::string kMixed = block("TITLE=good\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n") +
                           block("TITLE=none\nPEPMASS=257.6290\nSEQ=PEPTA\n") +
                           block("TITLE=two\nPEPMASS=257.6290\nCHARGE=2+ and 3+\nSEQ=PEPTA\n") +
                           block("TITLE=minus\nPEPMASS=257.6290\nCHARGE=2+\n", "100 -1\n") +
                           "BEGIN IONS\nTITLE=open\nPEPMASS=300\nCHARGE=2+\n" +
                           block("TITLE=last\nPEPMASS=257.6290 9 2+\nCHARGE=2+\nSEQ=PEPTA\n");

class PeptideSpectra : public JobTest {
 protected:
  PeptideSpectra() {
    folder_.put("peptide.yaml", kConfig);
    folder_.put("mixed.mgf", kMixed);
  }
  void train_model() {
    const CommandResult trained = command({"train", "peptide.yaml", "run.dir=run"});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_THAT(trained.err, HasSubstr("spectra/s"));
    EXPECT_THAT(trained.err, HasSubstr("peptide accuracy"));
    EXPECT_THAT(trained.err, Not(HasSubstr("tok/s")));
  }
  CommandResult predict(const std::string& spectra, const std::string& output,
                        std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"predict", "run", spectra, "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  }
  nlohmann::json eval(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "eval");
    arguments.push_back("--json");
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }
};

TEST_F(PeptideSpectra, BadSpectraAreLeftOutOneByOneAndListed) {
  train_model();
  const CommandResult tried = predict("mixed.mgf", "tried.mztab");
  ASSERT_EQ(tried.exit_code, 0) << tried.err;
  EXPECT_THAT(tried.err, HasSubstr("tried.mztab: 4 predictions of 6 spectra"));
  EXPECT_THAT(tried.err, HasSubstr("2 of 6 left out: 2 malformed, or no single charge; listed in "
                                   "tried.mztab.left_out.tsv"));
  EXPECT_THAT(tried.err, HasSubstr("2 spectra have no single charge: the one of the best score"));
  EXPECT_THAT(tried.err, HasSubstr("charges taken: "));
  EXPECT_EQ(read("tried.mztab.left_out.tsv"),
            "file\tspectrum\ttitle\tline\treason\n"
            "mixed.mgf\tindex=3\tminus\t46\tintensity is -1, expected 0 or more\n"
            "mixed.mgf\tindex=4\topen\t52\tBEGIN IONS within a spectrum: the one of line 48 has no "
            "END IONS\n");
  const std::string mztab = read("tried.mztab");
  EXPECT_THAT(mztab, HasSubstr("ms_run[1]:index=1\t"));
  EXPECT_THAT(mztab, HasSubstr("\t2|3|4\n"));
  EXPECT_THAT(mztab, HasSubstr("\t2|3\n"));
  EXPECT_THAT(mztab, HasSubstr("ms_run[1]:index=5\t"));

  const CommandResult skipped =
      predict("mixed.mgf", "skipped.csv", {"--on-bad-spectrum", "skip", "--left-out", "list"});
  EXPECT_THAT(skipped.err, HasSubstr("skipped.csv: 2 predictions of 6 spectra"));
  EXPECT_THAT(read("list"), HasSubstr("index=1\tnone\t15\tthe spectrum has no charge, and no"));
  const CommandResult given =
      predict("mixed.mgf", "given.csv", {"--on-bad-spectrum", "skip", "--default-charge", "2"});
  EXPECT_THAT(given.err, HasSubstr("given.csv: 4 predictions of 6 spectra"));
  const CommandResult key =
      predict("mixed.mgf", "key.csv", {"--on-bad-spectrum", "skip", "data.default_charge=2"});
  EXPECT_THAT(key.err, HasSubstr("key.csv: 4 predictions of 6 spectra"));
  EXPECT_EQ(read("key.csv"), read("given.csv"));
  EXPECT_EQ(predict("mixed.mgf", "x.csv", {"data.max_length=9"}).exit_code, 2);

  const CommandResult strict = predict("mixed.mgf", "strict.csv", {"--on-bad-spectrum", "fail"});
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_THAT(strict.err, HasSubstr("mixed.mgf:15: the spectrum has no charge"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "strict.csv"));

  // What is there already is replaced only where that is asked for.
  const CommandResult again = predict("mixed.mgf", "tried.mztab");
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("tried.mztab is there already; --force replaces it"));
  EXPECT_EQ(read("tried.mztab"), mztab);
  folder_.put("good.mgf", block("PEPMASS=257.6290\nCHARGE=2+\n"));
  EXPECT_EQ(predict("good.mgf", "tried.mztab", {"--force"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "tried.mztab.left_out.tsv")) << "of another file";

  folder_.put("none.mgf", "BEGIN IONS\nPEPMASS=3\n");
  const CommandResult none = predict("none.mgf", "none.csv");
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("none of the 1 spectra of none.mgf can be read"));
}

TEST_F(PeptideSpectra, MzmlIsNamedByItsOwnIds) {
  train_model();
  const auto copy = [&](const char* name) {
    std::filesystem::copy_file(testing::source_folder() + "/workloads/peptide/tests/data/" + name,
                               folder_ / name);
  };
  copy("psims_indexed.mzML");
  const CommandResult predicted = predict("psims_indexed.mzML", "out.mztab");
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("1 profile spectra were centroided"));
  const std::string mztab = read("out.mztab");
  EXPECT_THAT(mztab, HasSubstr("ms_run[1]-id_format\t[MS, MS:1000768, Thermo nativeID format, ]"));
  EXPECT_THAT(mztab, HasSubstr("ms_run[1]:controllerType=0 controllerNumber=1 scan=17\t"));
  EXPECT_THAT(mztab, HasSubstr("\t17\t2\t416.244725\t")) << "seconds, charge, m/z";
  EXPECT_THAT(mztab, Not(HasSubstr("scan=16\t")));
  EXPECT_THAT(read("out.mztab.left_out.tsv"), HasSubstr("scan=20\t"));
  const CommandResult strict =
      predict("psims_indexed.mzML", "strict.mztab", {"--on-bad-spectrum", "fail"});
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_THAT(strict.err, HasSubstr("scan=19': the spectrum is a profile, expected centroids"));

  folder_.put("survey.mzML",
              "<mzML><spectrum id=\"a\"><cvParam accession=\"MS:1000511\" name=\"ms level\" "
              "value=\"1\"/></spectrum></mzML>\n");
  const CommandResult survey = predict("survey.mzML", "survey.mztab");
  EXPECT_EQ(survey.exit_code, 3);
  EXPECT_THAT(
      survey.err,
      HasSubstr("survey.mzML: there is no spectrum of MS level 2 in it (1 of other levels)"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "survey.mztab"));
}

// A model and the file of its predictions are measured on the same spectra by the same rule.
TEST_F(PeptideSpectra, WhatCannotBeScoredIsWrongOrLeftOutInBothWays) {
  train_model();
  folder_.put("truth.mgf", kMixed + block("PEPMASS=257.6\nCHARGE=2+\nSEQ=PEUTA\n") +
                               block("PEPMASS=257.6\nCHARGE=2+\nSEQ=PEPS[Phospho]A\n") +
                               block("PEPMASS=257.6\nCHARGE=2+\nSEQ=PEC+57.021A\n"));
  ASSERT_EQ(predict("truth.mgf", "found.mztab").exit_code, 0);
  for (const std::string rule : {"wrong", "leave-out"}) {
    const nlohmann::json model = eval({"run", "--data", "truth.mgf", "--unscorable", rule});
    const nlohmann::json file = eval({"found.mztab", "--data", "truth.mgf", "--unscorable", rule});
    EXPECT_EQ(model["truth"]["annotated"], 7);
    EXPECT_EQ(model["truth"]["unscorable"], 2);
    EXPECT_EQ(model["truth"]["bad"], 2);
    EXPECT_EQ(model["spectra"], rule == "wrong" ? 7 : 5);
    EXPECT_EQ(model["unscorable"], rule == "wrong" ? 2 : 0);
    for (const char* name : {"truth", "spectra", "predicted", "aa_precision", "aa_recall",
                             "peptide_precision", "aupc", "mass_error_ppm", "residues_true"})
      EXPECT_EQ(model[name], file[name]) << name;
  }
  const CommandResult text = command({"eval", "run", "--data", "truth.mgf"});
  EXPECT_THAT(text.out, HasSubstr("2 sequences, counted as wrong"));
  EXPECT_THAT(text.out, HasSubstr("9 spectra, 7 of them with a sequence, 2 malformed"));
  EXPECT_THAT(text.out, HasSubstr("1 with modifications that the model lacks"));
}

TEST_F(PeptideSpectra, TrainingLeavesOutAndListsBadSpectra) {
  const auto train = [&](const std::string& run, const std::string& policy) {
    return command({"train", "peptide.yaml", "run.dir=" + run, "data.path=mixed.mgf",
                    "data.validation_fraction=0", "data.cache_dir=cache",
                    "train.curriculum_stages=[]", "data.modifications=massivekb", policy});
  };
  const CommandResult skipped = train("skipped", "data.on_bad_spectrum=skip");
  ASSERT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.err,
              HasSubstr("4 of 6 left out: 4 malformed, or no single charge; listed in"));
  EXPECT_THAT(skipped.err, HasSubstr("2 to train on"));
  const CommandResult tried = train("tried", "data.on_bad_spectrum=try-charges");
  EXPECT_THAT(tried.err, HasSubstr("2 of 6 left out"));
  EXPECT_THAT(tried.err, HasSubstr("the one of their sequence's mass was taken"));
  EXPECT_THAT(tried.err, HasSubstr("4 to train on"));
  const CommandResult strict = train("strict", "data.on_bad_spectrum=fail");
  EXPECT_EQ(strict.exit_code, 3);
  EXPECT_THAT(strict.err, HasSubstr("mixed.mgf:15: "));
}

TEST_F(PeptideSpectra, WritesTheSpectraThatTrainingDraws) {
  const auto generate = [&](const std::string& output, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"peptide", "generate", "peptide.yaml", "-o", output};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  };
  const CommandResult whole = generate("whole.mgf", {"--count", "14"});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("whole.mgf: 14 spectra (from step 0, 2 stages), seed "));
  const std::string text = read("whole.mgf");
  // The second stage begins with step 2, spectrum 8.
  ASSERT_EQ(generate("second.mgf", {"--count", "6", "--stage", "second"}).exit_code, 0);
  const std::string second = read("second.mgf");
  const size_t from = text.find("BEGIN IONS\nTITLE=synthetic 8 stage second");
  ASSERT_NE(from, std::string::npos);
  EXPECT_EQ(second.substr(second.find("BEGIN IONS")), text.substr(from));
  ASSERT_EQ(generate("number.mgf", {"--count", "6", "--stage", "2"}).exit_code, 0);
  EXPECT_EQ(read("number.mgf"), second);
  ASSERT_EQ(generate("other.mgf", {"--count", "6", "--stage", "2", "--seed", "7"}).exit_code, 0);
  EXPECT_NE(read("other.mgf"), second);
  EXPECT_EQ(generate("other.mgf", {"--count", "6"}).exit_code, 2) << "it is there";
  EXPECT_THAT(generate("x.mgf", {"--count", "6", "--stage", "secnd"}).err,
              HasSubstr("Did you mean 'second'? Its stages are first, second"));

  ASSERT_EQ(generate("whole.spectra", {"--count", "14"}).exit_code, 0);
  for (const std::string data : {"whole.spectra", "whole.mgf"}) {
    const CommandResult trained = command({"train", "peptide.yaml", "run.dir=of-" + data,
                                           "data.path=" + data, "data.validation_fraction=0",
                                           "data.cache_dir=cache", "train.curriculum_stages=[]"});
    EXPECT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_THAT(trained.err, HasSubstr("14 to train on"));
  }
}

}  // namespace
}  // namespace fullbore
