#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/train/config.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::vector<float>;

constexpr const char* kConfig =
    "run: {seed: 3}\n"
    "data: {min_length: 5, max_length: 6, validation_spectra: 16, modifications: [C+57.021]}\n"
    "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
    "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 2,\n"
    "  num_latent_steps: 1, dropout: 0.1, gated_answer: true, step_embedding: true}\n"
    "optim: {warmup_steps: 3}\n"
    "train: {steps: 4, batch_size: 8, eval_interval: 4, checkpoint_interval: 4,\n"
    "  curriculum_stages: [{steps: 2, max_length: 5}, {steps: 2, max_length: 6, noise_peaks: 2}]}\n"
    "log: {interval: 1}\n";

const std::vector<std::string> kStandStill = {"optim.learning_rate=0",
                                              "optim.minimum_learning_rate=0"};

class PeptideWeightsTest : public JobTest {
 protected:
  PeptideWeightsTest() { folder_.put("peptide.yaml", kConfig); }
  CommandResult train(const std::string& run, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train", "peptide.yaml", "run.dir=" + run});
    return command(more);
  }
  /// Takes the weights of `source` and leaves them as they are.
  CommandResult from(const std::string& source, const std::string& run,
                     std::vector<std::string> more = {}) const {
    more.insert(more.end(), kStandStill.begin(), kStandStill.end());
    more.push_back("model.initialize_from=" + source);
    return train(run, more);
  }
  void expect_refusal(const CommandResult& result, const std::string& message) const {
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  /// A matrix of the last checkpoint, row by row.
  std::vector<Values> table(const std::string& run, const std::string& name) const {
    const Checkpoint weights = open_checkpoint_folder(folder_ / (run + "/checkpoints/last"))
                                   .take_or_throw()
                                   .group("weights")
                                   .take_or_throw();
    for (const StoredTensor& tensor : weights.tensors()) {
      if (tensor.name != name) continue;
      Values values(static_cast<size_t>(tensor.type.shape.elements()));
      weights.read(tensor, values.data()).take_or_throw();
      const size_t rows = static_cast<size_t>(tensor.type.shape[0]);
      const size_t columns = values.size() / rows;
      std::vector<Values> result;
      for (size_t row = 0; row < rows; ++row)
        result.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(row * columns),
                            values.begin() + static_cast<std::ptrdiff_t>((row + 1) * columns));
      return result;
    }
    ADD_FAILURE() << run << " has no " << name;
    return {};
  }
};

// Weights that were never changed are those that the seed gives: who starts from them does what a first run
// does, to the bit, unless anything else of the source is taken up: its step, stage, moments, place in the data.
TEST_F(PeptideWeightsTest, CurriculumOptimizerAndDataBeginAnew) {
  ASSERT_EQ(train("still", kStandStill).exit_code, 0);
  ASSERT_EQ(train("fresh").exit_code, 0);
  const CommandResult second = train("second", {"model.initialize_from=still"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("tensors taken; moments, step and data begin anew"));
  EXPECT_THAT(second.err, HasSubstr("taken    "));
  EXPECT_THAT(second.err, Not(HasSubstr("in part")));
  EXPECT_EQ(without_times(metrics("second")), without_times(metrics("fresh")));
  EXPECT_TRUE(read("second/checkpoints/last/weights.safetensors") ==
              read("fresh/checkpoints/last/weights.safetensors"));
}

TEST_F(PeptideWeightsTest, TrainedWeightsAreTaken) {
  ASSERT_EQ(train("first").exit_code, 0);
  const CommandResult second = from("first", "second", {"run.seed=4"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_TRUE(read("second/checkpoints/last/weights.safetensors") ==
              read("first/checkpoints/last/weights.safetensors"));
}

TEST_F(PeptideWeightsTest, SymbolsKeepTheirRowsAndColumnsInAnotherAlphabet) {
  ASSERT_EQ(train("first").exit_code, 0);
  const CommandResult second =
      from("first", "second", {"data.modifications=[M+15.995,C+57.0215]", "run.seed=4"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("in part  head.weight: 25 of 26 rows"));
  EXPECT_THAT(second.err, HasSubstr("in part  soft_embedding.weight: 25 of 26 columns"));
  EXPECT_THAT(second.err, HasSubstr("in part  answer_start: 25 of 26 columns"));
  // 0 to 23 are those of every alphabet; then C+57.021 there, M+15.995 and C+57.021 here.
  for (const char* name :
       {"token_embedding.weight", "head.weight", "head.bias", "gate.weight", "gate.bias"}) {
    SCOPED_TRACE(name);
    const auto before = table("first", name), after = table("second", name);
    ASSERT_EQ(before.size(), 25U);
    ASSERT_EQ(after.size(), 26U);
    for (size_t row = 0; row < 24; ++row) EXPECT_EQ(after[row], before[row]);
    EXPECT_EQ(after[25], before[24]);
  }
  EXPECT_NE(table("second", "head.weight")[24], table("first", "head.weight")[24]);
  EXPECT_EQ(table("second", "gate.bias")[24], Values{-2}) << "drawn as in a model of its own";
  for (const char* name : {"soft_embedding.weight", "answer_start"}) {
    SCOPED_TRACE(name);
    const auto before = table("first", name), after = table("second", name);
    ASSERT_EQ(after.size(), before.size());
    for (size_t row = 0; row < before.size(); ++row) {
      Values expected = before[row];
      expected.insert(expected.begin() + 24, after[row].at(24));
      EXPECT_EQ(after[row], expected);
    }
  }
  // Back to the first alphabet nothing is left of the new symbol, and nothing of the old ones is lost.
  const CommandResult back = from("second", "third");
  ASSERT_EQ(back.exit_code, 0) << back.err;
  EXPECT_TRUE(read("third/checkpoints/last/weights.safetensors") ==
              read("first/checkpoints/last/weights.safetensors"));
}

TEST_F(PeptideWeightsTest, SettingsThatNoShapeTellsAreCompared) {
  ASSERT_EQ(train("first").exit_code, 0);
  expect_refusal(from("first", "a", {"model.num_heads=4"}), "model.num_heads is 4, there 2");
  expect_refusal(from("first", "a", {"model.max_mass=3000"}), "model.max_mass is 3000, there 2000");
  expect_refusal(from("first", "a", {"model.precursor_input=mz"}),
                 "model.precursor_input is mz, there mass");
  expect_refusal(from("first", "a", {"data.start_and_end=false"}),
                 "data.start_and_end is false, there true");
  const CommandResult taken =
      from("first", "b", {"model.precursor_input=mz", "model.initialize_partial=true"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_THAT(taken.err, HasSubstr("differs  model.precursor_input is mz, there mass"));
  // Thoughts are repetitions of the same layers.
  const CommandResult longer = from("first", "c", {"model.num_latent_steps=3"});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
}

TEST_F(PeptideWeightsTest, SlotsAndStepsAreCutFreelyAndAddedOnRequest) {
  ASSERT_EQ(train("first").exit_code, 0);
  const std::vector<std::string> short_ones = {"model.max_seq_len=8",
                                               "model.num_supervision_steps=1"};
  const CommandResult shorter = from("first", "shorter", short_ones);
  ASSERT_EQ(shorter.exit_code, 0) << shorter.err;
  EXPECT_THAT(shorter.err, HasSubstr("in part  latent_start: 8 of 8 rows"));
  EXPECT_THAT(shorter.err, HasSubstr("in part  step_embedding.weight: 1 of 1 rows"));
  const std::vector<std::string> long_ones = {"model.max_seq_len=11",
                                              "data.modifications=[C+57.021,M+15.995]"};
  expect_refusal(from("first", "longer", long_ones),
                 "position_embedding.weight: f32[11,48] here, f32[9,48] in the checkpoint");
  std::vector<std::string> partial = long_ones;
  partial.push_back("model.initialize_partial=true");
  const CommandResult longer = from("first", "longer", partial);
  ASSERT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_THAT(longer.err, HasSubstr("in part  answer_start: 9 of 11 rows and 25 of 26 columns"));
  const auto before = table("first", "answer_start"), after = table("longer", "answer_start");
  for (size_t row = 0; row < 9; ++row)
    EXPECT_EQ(Values(after[row].begin(), after[row].begin() + 25), before[row]);
  EXPECT_EQ(after[10], Values(26, 0.0F));
  EXPECT_EQ(table("longer", "position_embedding.weight")[8],
            table("first", "position_embedding.weight")[8]);
}

TEST_F(PeptideWeightsTest, OtherModelsAreRefused) {
  testing::use_command("fullbore_tiny");  // it has another model, whichever workloads there are
  const std::string other = "tiny";
  ASSERT_EQ(JobTest::train({"run.dir=other", "train.steps=1", "model.name=tiny"}).exit_code, 0);
  expect_refusal(from("other", "a"), "model.name is peptide, there " + other);
  ASSERT_EQ(train("first").exit_code, 0);
  const CommandResult crossed = JobTest::train(
      {"run.dir=b", "model.initialize_from=first", "train.steps=1", "model.name=tiny"});
  expect_refusal(crossed, "model.name is " + other + ", there peptide");
}

}  // namespace
}  // namespace fullbore
