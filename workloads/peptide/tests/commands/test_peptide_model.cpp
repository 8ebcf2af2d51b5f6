#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kConfig =
    "data: {min_length: 5, max_length: 6, validation_spectra: 16, min_peaks: 5}\n"
    "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
    "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 2,\n"
    "  num_latent_steps: 2, dropout: 0.1}\n"
    "optim: {schedule: constant, warmup_steps: 0, ema_decay: 0.9, ema_warmup: false}\n"
    "train: {steps: 6, batch_size: 8, eval_interval: 3, evaluate: ema, checkpoint_interval: 2,\n"
    "  curriculum_stages: [{steps: 2, max_length: 5}, {steps: 2, noise_peaks: 2,\n"
    "  spectrum_weight: 0.1, max_length: 6}, {steps: 2, noise_peaks: 4, mass_error_ppm: 5}]}\n"
    "log: {interval: 1}\n";

/// Two annotated spectra of b and y ions, and one without a sequence.
constexpr const char* kSpectra =
    "BEGIN IONS\nTITLE=first\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n"
    "98.06 1\n227.103 2\n324.155 3\n425.203 2\n90.055 4\n191.103 5\n288.155 6\n417.198 7\nEND "
    "IONS\n"
    "BEGIN IONS\nTITLE=second\nPEPMASS=246.1266\nCHARGE=2+\nSEQ=SAGEK\n"
    "88.04 1\n159.08 2\n216.10 1\n345.14 3\n147.11 4\n276.16 5\n333.18 2\n404.21 6\nEND IONS\n"
    "BEGIN IONS\nTITLE=third\nPEPMASS=300.2\nCHARGE=3+\n"
    "100.0 1\n150.0 2\n200.0 3\n250.0 1\n300.0 2\n350.0 4\nEND IONS\n";

class PeptideModelTest : public JobTest {
 protected:
  PeptideModelTest() {
    folder_.put("peptide.yaml", kConfig);
    folder_.put("spectra.mgf", kSpectra);
  }
  CommandResult train_peptide(const std::string& run, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train", "peptide.yaml", "run.dir=" + run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return command(arguments);
  }
  std::string weights(const std::string& run) const {
    return read(run + "/checkpoints/last/weights.safetensors");
  }
};

TEST_F(PeptideModelTest, IsDiagnosed) {
  testing::expect_all_time_attributed(folder_, {"peptide.yaml"});
}

TEST_F(PeptideModelTest, DetailThatNobodyWantsIsNotComputed) {
  testing::expect_detail_is_not_computed(folder_, {"peptide.yaml"});
}

TEST_F(PeptideModelTest, TrainsThroughACurriculumAndResumesToTheSameBits) {
  const CommandResult whole = train_peptide("whole");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.err, HasSubstr("synthetic, 3 stages; 16 to validate on"));
  EXPECT_THAT(whole.err, HasSubstr("sequence_accuracy"));
  ASSERT_EQ(train_peptide("parts", {"train.steps=3"}).exit_code, 0);
  const CommandResult rest = train_peptide("parts", {"--resume"});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(weights("whole") == weights("parts"));
  const std::vector<nlohmann::json> lines = metrics("whole");
  int steps = 0;
  for (const nlohmann::json& line : lines) {
    if (line["kind"] != "train") continue;
    ++steps;
    for (const char* name :
         {"ce_step_0", "ce_step_1", "ce_final", "spectrum_loss", "token_accuracy",
          "sequence_accuracy", "mean_mass_error_ppm", "flip_rate_1"})
      EXPECT_TRUE(line.contains(name)) << name;
  }
  EXPECT_EQ(steps, 6);
}

TEST_F(PeptideModelTest, PredictsAndIsScored) {
  ASSERT_EQ(train_peptide("run").exit_code, 0);
  const CommandResult predicted =
      command({"predict", "run", "spectra.mgf", "-o", "found.mztab", "--batch", "2"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("found.mztab: 3 predictions of 3 spectra"));
  EXPECT_THAT(read("found.mztab"), HasSubstr("ms_run[1]:index=2"));
  // A model's own answers and those that it wrote down are the same.
  const CommandResult same =
      command({"eval", "found.mztab", "--data", "spectra.mgf", "--against", "run", "--json"});
  ASSERT_EQ(same.exit_code, 7) << "two spectra decide nothing" << same.err;
  const nlohmann::json json = nlohmann::json::parse(same.out);
  EXPECT_EQ(json["spectra"], 2);
  EXPECT_EQ(json["no_worse"]["verdict"], "undecided");
  for (const nlohmann::json& measure : json["measures"])
    if (!measure["difference"].is_null()) {
      EXPECT_EQ(measure["difference"], 0) << measure.dump();
    }
  // The precursor decides what is possible.
  ASSERT_EQ(command({"predict", "run", "spectra.mgf", "-o", "possible.csv", "--precursor-ppm",
                     "0.001", "--only-within"})
                .exit_code,
            0);
  EXPECT_THAT(read("possible.csv"), Not(HasSubstr("index=0")));
  const CommandResult held_out = command({"eval", "run", "--json"});
  ASSERT_EQ(held_out.exit_code, 0) << held_out.err;
  EXPECT_TRUE(nlohmann::json::parse(held_out.out).contains("token_accuracy"));
}

// Training keeps its losses in fp32, and predicting has none.
TEST_F(PeptideModelTest, PredictsInLowPrecision) {
  ASSERT_EQ(train_peptide("run", {"engine.precision=bf16", "train.steps=1",
                                  "train.curriculum_stages=[steps=1]"})
                .exit_code,
            0);
  const CommandResult predicted = command({"predict", "run", "spectra.mgf", "-o", "found.csv"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("found.csv: 3 predictions of 3 spectra"));
}

TEST_F(PeptideModelTest, ScoresWhatAnotherToolPredicted) {
  folder_.put("other.csv", "spectrum_id,sequence,score\nfirst,PEPTA,0.9\nsecond,SAGEQ,0.5\n");
  const CommandResult scored = command({"eval", "other.csv", "--data", "spectra.mgf", "--json"});
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const nlohmann::json json = nlohmann::json::parse(scored.out);
  // K and Q are one within the tolerance of the field's measure.
  EXPECT_EQ(json["peptide_precision"], 1.0) << scored.out;
}

TEST_F(PeptideModelTest, LearnsFromMeasuredSpectra) {
  const CommandResult trained = train_peptide(
      "run", {"data.path=spectra.mgf", "data.validation_fraction=0", "train.steps=2",
              "train.batch_size=2", "train.curriculum_stages=[]", "data.cache_dir=cache"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("2 to train on, 0 of other peptides held out"));
  EXPECT_THAT(trained.err, HasSubstr("1 of 3 left out: 1 no sequence"));
}

TEST_F(PeptideModelTest, LearnsFromSpectraThatAreDisturbed) {
  const auto train = [&](const std::string& run, const std::string& steps, bool corrupt) {
    return train_peptide(
        run, {"data.path=spectra.mgf", "data.validation_fraction=0", steps, "train.batch_size=2",
              "data.cache_dir=cache", corrupt ? "data.corrupt=true" : "data.corrupt=false"});
  };
  const CommandResult whole = train("whole", "train.steps=4", true);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_THAT(whole.err, HasSubstr("2 to train on, disturbed anew each time, 0 of"));
  ASSERT_EQ(train("clean", "train.steps=4", false).exit_code, 0);
  EXPECT_FALSE(weights("whole") == weights("clean"));
  ASSERT_EQ(train("parts", "train.steps=3", true).exit_code, 0);
  ASSERT_EQ(train_peptide("parts", {"data.path=spectra.mgf", "data.validation_fraction=0",
                                    "train.steps=4", "train.batch_size=2", "data.cache_dir=cache",
                                    "data.corrupt=true", "--resume"})
                .exit_code,
            0);
  EXPECT_TRUE(weights("whole") == weights("parts"));
}

// Spectra of 6 to 20 peaks, in no order of size: in programs of a size that fits as in the widest, each has its answer.
TEST_F(PeptideModelTest, TrimmedBatchesPredictTheSame) {
  std::string spectra;
  for (int i = 0; i < 11; ++i) {
    spectra += fmt::format("BEGIN IONS\nTITLE=s{}\nPEPMASS={}\nCHARGE=2+\n", i, 300 + 7 * i);
    for (int peak = 0; peak < 6 + i * 5 % 15; ++peak)
      spectra += fmt::format("{} {}\n", 80 + 17 * peak + i, 1 + (peak * 7 + i) % 5);
    spectra += "END IONS\n";
  }
  folder_.put("mixed.mgf", spectra);
  const std::vector<std::string> settings = {"model.max_peaks=20", "train.steps=1",
                                             "train.curriculum_stages=[steps=1]"};
  std::vector<std::string> untrimmed = settings;
  untrimmed.push_back("data.trim_peaks=false");
  ASSERT_EQ(train_peptide("trimmed", settings).exit_code, 0);
  ASSERT_EQ(train_peptide("untrimmed", untrimmed).exit_code, 0);
  std::vector<std::vector<std::string>> rows[2];
  for (const bool trimmed : {false, true}) {
    const std::string run = trimmed ? "trimmed" : "untrimmed";
    const CommandResult predicted =
        command({"predict", run, "mixed.mgf", "-o", run + ".csv", "--batch", "3"});
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    EXPECT_THAT(predicted.err, HasSubstr("11 predictions of 11 spectra"));
    std::istringstream lines(read(run + ".csv"));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      auto& row = rows[trimmed].emplace_back();
      for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    }
  }
  ASSERT_EQ(rows[0].size(), 12U);
  ASSERT_EQ(rows[1].size(), 12U);
  for (size_t i = 0; i < 12; ++i)
    for (size_t field = 0; field < 2; ++field) EXPECT_EQ(rows[0][i][field], rows[1][i][field]);
}

TEST_F(PeptideModelTest, WhatCannotBeIsRefusedBeforeAnythingIsMade) {
  const auto refused = [&](const std::vector<std::string>& settings, const char* message) {
    const CommandResult result = train_peptide("none", settings);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
  };
  refused({"data.charge_distribution=[two]"},
          "data.charge_distribution: 'two' is no charge and its share, such as 2:0.7");
  refused({"train.curriculum_stages=[steps=2 noise_peak=3]"},
          "'noise_peak=3' in 'steps=2 noise_peak=3' is no setting of a stage. Did you mean "
          "'noise_peaks'?");
  refused({"data.charge_distribution=[2:0.5, 7:0.5]"},
          "'7:0.5': a charge from 1 to 6 was expected");
  refused({"data.charge_distribution=[nan:1]"},
          "'nan:1' is no charge and its share, such as 2:0.7");
  refused({"data.charge_distribution=[2:0.5, 1e300:0.5]"},
          "'1e300:0.5': a charge from 1 to 6 was expected");
  refused({"train.curriculum_stages=[noise_peaks=3]"}, "does not say its steps");
  refused({"train.curriculum_stages=[steps=nan]"}, "'steps=nan' in 'steps=nan' has no number");
  refused({"train.curriculum=default"}, "train.curriculum default (command line) does not go with");
  refused({"model.context=3"}, "'model.context' is a key of model.name=");
  refused({"model.num_heads=5"}, "model.hidden_dim 48");
  refused({"data.corrupt=true"}, "data.corrupt is for the spectra of a data.path");
  refused({"data.corrupt=true", "data.path=spectra.mgf", "train.curriculum_stages=[]"},
          "data.corrupt: nothing disturbs the spectra; set data.noise_peaks, ");
  const CommandResult text = command({"predict", "nothing", "spectra.mgf", "-o", "x.mztab"});
  EXPECT_EQ(text.exit_code, 3) << text.err;
  EXPECT_EQ(command({"predict", "nothing", "spectra.mgf", "-o", "x.txt"}).exit_code, 2);
}

// Of 1000 Da bf16 knows 4: distances of ions and peaks would be noise.
TEST_F(PeptideModelTest, MassesAndTheOptimizerStayInFp32) {
  const CommandResult casts = command({"plan", "peptide.yaml", "engine.precision=bf16", "--casts"});
  ASSERT_EQ(casts.exit_code, 0) << casts.err;
  EXPECT_THAT(casts.out, HasSubstr("-> bf16"));
  std::istringstream lines(casts.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("-> bf16") == std::string::npos) continue;
    // What matmuls read of a weight is written by the kernel that updates the weight.
    if (line.find("optimizer") != std::string::npos &&
        line.find(": stored for: the next run: ") != std::string::npos)
      continue;
    for (const char* scope : {" loss ", " peak_mass ", " precursor_mass ", " optimizer "})
      EXPECT_EQ(line.find(std::string(" in fused") + scope), std::string::npos) << line;
  }
}

TEST_F(PeptideModelTest, AModelOfPeptidesWritesNoText) {
  ASSERT_EQ(train_peptide("run", {"train.steps=1"}).exit_code, 0);
  EXPECT_EQ(command({"eval", "run", "--batches", "3"}).exit_code, 2);
  const CommandResult text = command({"generate", "run"});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_THAT(text.err, HasSubstr("is of a peptide model, not of a language model"));
}

}  // namespace
}  // namespace fullbore
