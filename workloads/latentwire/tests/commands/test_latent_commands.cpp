#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/dtype.h"
#include "fullbore/base/files.h"
#include "fullbore/ckpt/mapped_tensors.h"
#include "fullbore/nn/decoder_model.h"
#include "fullbore/text/huggingface_model.h"
#include "fullbore/train/step_function.h"
#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/device.h"
#include "tests/support/output_rows.h"
#include "tests/support/paths.h"
#include "workloads/latentwire/published_shapes.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const OutputRows& rows() {
  static const OutputRows all = {
      {"latentwire prepare",
       {{"latentwire", "prepare", "--folder", "fresh", "--model", "bpe", "train.steps=1",
         "train.batch_size=2", "data.validation_prompts=2"},
        false}},
      {"latentwire encode",
       {{"latentwire", "encode", "run", "--context", "a", "--question", "b", "-o", "new.wire",
         "--force"},
        true,
        {"new.wire"}}},
      {"latentwire decode", {{"latentwire", "decode", "run", "prompt.wire"}}},
      {"eval --report",
       {{"eval", "run", "--prompts", "2", "--systems", "latent", "--bits", "16", "--report",
         "new-report.json", "--picture", "new.svg"},
        true,
        {"new-report.json", "new.svg"}}},
      {"latentwire export-prefix",
       {{"latentwire", "export-prefix", "run", "prompt.wire", "-o", "new.safetensors", "--force"},
        true,
        {"new.safetensors"}}},
      {"latentwire bench",
       {{"latentwire", "bench", "tiny.yaml", "--steps", "2", "--samples", "4", "--switch",
         "head_rows", "--json", "new.json"},
        true,
        {"new.json"}}}};
  return all;
}

class LatentCommands : public OutputRowsTest {
 protected:
  LatentCommands() : OutputRowsTest(rows()) {}
  void prepare() override {}
};

TEST_F(LatentCommands, EachHasARow) { expect_rows_of_workloads(rows(), {"latentwire"}); }

class LatentOutput : public OutputRowsTest {
 protected:
  LatentOutput() : OutputRowsTest(rows()) {}
  void prepare() override {
    folder_.put("tiny.yaml",
                "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2}, "
                "receivers: {folders: ['bpe=random:bpe']}, train: {steps: 1, batch_size: 4}, "
                "data: {validation_prompts: 4}}\n");
    ASSERT_EQ(command({"train", "tiny.yaml", "run.dir=run"}).exit_code, 0);
    ASSERT_EQ(command({"latentwire", "encode", "run", "--context", "a", "--question", "b", "-o",
                       "prompt.wire"})
                  .exit_code,
              0);
  }
};

TEST_F(LatentOutput, ToAFullDeviceIsNamed) { expect_full_device_named(); }
TEST_F(LatentOutput, ToAFullDiskIsNamed) { expect_full_disk_named(); }

TEST_F(LatentCommands, AreDiagnosed) {
  folder_.put("tiny.yaml",
              "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2}, "
              "receivers: {folders: ['bpe=random:bpe']}, train: {steps: 1, batch_size: 4}, "
              "data: {validation_prompts: 4}}\n");
  testing::expect_all_time_attributed(folder_, {"tiny.yaml"});
  testing::expect_detail_is_not_computed(folder_, {"tiny.yaml"});
}

// Questions of a file, some of them held out; everything that tells a model more is on.
TEST_F(LatentCommands, TrainAndEvaluateOnQuestionsOfAFile) {
  std::string lines;
  for (int i = 0; i < 12; ++i)
    lines += fmt::format(
        "{{\"id\": {0}, \"context\": \"The price is {0}.\", \"question\": \"What is the "
        "price?\", \"answers\": [\"{0}\", \"the {0}\"]}}\n",
        10 + i);
  folder_.put("questions.jsonl", lines);
  folder_.put(
      "tiny.yaml",
      "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2}, "
      "receivers: {folders: ['bpe=random:bpe'], calibration: train_stats}, train: {steps: 2, "
      "batch_size: 4, eval_interval: 2, checkpoint_interval: 2}, data: {path: questions.jsonl, "
      "validation_prompts: 4}, conditioning: {deep_prefix: true, attending_blocks: [2], "
      "attending_heads: 2, coprocessor: 4, rank: 2, gist_tokens: 4}}\n");
  CommandResult result = command({"train", "tiny.yaml", "run.dir=run", "switches.head_rows=check"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("8 of 12 questions"));
  EXPECT_THAT(result.err, HasSubstr("switch head_rows is on: loss and gradient differ by"));
  EXPECT_THAT(read("run/config.resolved.yaml"), HasSubstr("head_rows: on"));
  result = command({"eval", "run", "--bits", "8", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["prompts"], 4) << result.out;
  // What training has seen is kept beside the weights, for eval to calibrate by.
  const MappedTensors weights =
      MappedTensors::open(folder_ / "run/checkpoints/last/weights.safetensors");
  const MappedTensor* const steps = weights.find("training_statistics.bpe.steps");
  ASSERT_NE(steps, nullptr);
  EXPECT_EQ(load_element(steps->bytes.data(), DType::f32, 0), 2);
  result = command({"eval", "run", "--data", "questions.jsonl", "--prompts", "9", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["prompts"], 9) << result.out;

  result = command({"train", "tiny.yaml", "run.dir=other", "data.validation_prompts=12"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("has 12 questions, of which none would be left to train on"));
  result = command({"latentwire", "bench", "tiny.yaml", "--steps", "2", "--samples", "4",
                    "--switch", "head_rows", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json stages = nlohmann::json::parse(result.out)["stages"];
  EXPECT_EQ(stages[1]["switch"], "head_rows");
  EXPECT_EQ(stages[1]["kept"], true) << stages[1]["reason"];
  EXPECT_EQ(command({"latentwire", "bench", "tiny.yaml", "--steps", "-2"}).exit_code, 2);
  result =
      command({"train", "tiny.yaml", "run.dir=other", "receivers.anchor=", "receivers.begin=none"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("conditioning.deep_prefix"));
  folder_.put("questions.jsonl", lines + "{\"id\": 1}\n");
  result = command({"train", "tiny.yaml", "run.dir=other"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("questions.jsonl:13: byte "));
}

// A model of transformers' own files, which stay where they are: a checkpoint knows their hashes.
TEST_F(LatentCommands, TrainThroughAFolderThatIsMapped) {
  const nn::DecoderConfig decoder{.vocabulary = 300,
                                  .layers = 1,
                                  .heads = 2,
                                  .width = 16,
                                  .hidden = 24,
                                  .context = 512,
                                  .groups = 1};
  const auto save = [&](uint64_t seed) {
    const TracedStep step = trace_evaluation(
        [&](Trace& trace, std::span<const Tensor> batch) {
          const Tensor x = decoder_embeddings(trace, batch[0], decoder);
          const Tensor last = decoder_states(trace, {.embeddings = x}, decoder).last;
          return Loss(
              language_model_loss(trace, decoder_head(trace, last, decoder), batch[0], {}).mean);
        },
        {{"tokens", {DType::i32, {1, 4}}}});
    std::filesystem::remove_all(folder_ / "model");
    export_huggingface_model(folder_ / "model", {"llama", decoder, {}},
                             initial_state(step, seed, testing_support::cpu_device(1)));
    save_tokenizer(*latentwire::published_shape("smollm2-135m").tokenizer,
                   folder_ / "model/tokenizer.json")
        .take_or_throw();
  };
  save(1);
  std::filesystem::copy(testing::source_folder() + "/workloads/latentwire/tests/golden/bert",
                        folder_ / "bert");
  folder_.put("tiny.yaml",
              "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2, "
              "encoder: sentence, text_encoder: bert, max_tokens: 16}, "
              "receivers: {folders: [mine=model]}, train: {steps: 2, batch_size: 4, "
              "checkpoint_interval: 1}, data: {validation_prompts: 4}}\n");
  CommandResult result = command({"train", "tiny.yaml", "run.dir=run", "train.steps=1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("read where they lie"));
  EXPECT_THAT(read("run/checkpoints/last/weights.safetensors"), Not(HasSubstr("mlp.gate")));
  result = command({"train", "run", "--resume", "train.steps=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("reads    receivers.folders=[\"mine=" + folder_.path()));
  EXPECT_THAT(result.err, HasSubstr("reads    wire.text_encoder=" + folder_.path()));

  // Where they lie is not believed to a checkpoint.
  const auto eval = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"eval", "run", "--prompts", "3", "--bits", "8", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return command(words);
  };
  result = eval({});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("--frozen-from"));
  result = eval({"--frozen-from", "mine=model", "text_encoder=bert"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out)["prompts"], 3) << result.out;
  result = command({"latentwire", "encode", "run", "--context", "The day is Monday.", "--question",
                    "What is the day?", "-o", "mapped.wire", "--cut", "--frozen-from", "mine=model",
                    "text_encoder=bert"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  result = command({"latentwire", "encode", "run", "--context",
                    "the day is the day is the day is the day is", "--question", "what is the day",
                    "-o", "long.wire", "--frozen-from", "mine=model", "text_encoder=bert"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("(wire.max_tokens); --cut"));
  save(2);
  EXPECT_THAT(eval({"--frozen-from", "model"}).err, HasSubstr("of mine or text_encoder"));
  result = eval({"--frozen-from", "mine=model", "text_encoder=bert"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("has the hash"));
}

// Section 9 of the specification, without weights: what is trained and frozen, and the work of one example of 8 answer
// tokens. Matmuls of the frozen models count four times a weight for each of 46 places (32 vectors, an anchor of 7 bytes,
// 7 tokens) and their heads for 8 of these; the encoder adds a few thousandths.
TEST_F(LatentCommands, PlanTheReferenceConfigurationsWithoutWeights) {
  const auto plan = [&](const std::string& name) {
    const CommandResult result =
        command({"plan", testing::source_folder() + "/configs/latentwire-" + name + ".yaml",
                 "--json", "train.batch_size=1", "engine.accumulate=1",
                 "engine.parallel_microbatches=1", "receivers.max_answer_tokens=8",
                 "loss.distillation_weight=0", "switches.length_buckets=off"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json reference = plan("ref");
  constexpr int64_t kFrozen = 8'030'261'248 + 7'615'616'512, kStatistics = 2 * (4096 + 3584) + 2;
  constexpr int64_t kTrained = 5'405'696 + 5'670'913 + 5'012'481 - 2 * 512;  // no length hints
  EXPECT_EQ(reference["frozen_parameters"], kFrozen + kStatistics);
  EXPECT_EQ(reference["parameters"], kFrozen + kStatistics + kTrained);
  const double blocks = 4.0 * 46 * (6.979e9 + 6.525e9);
  const double heads = 4.0 * 8 * (128256.0 * 4096 + 152064.0 * 3584);
  EXPECT_NEAR(reference["train"]["flops"].get<double>() / (blocks + heads), 1, 0.01);
  // Frozen weights in bf16, trained ones with gradient and moments in f32.
  const double state = 2.0 * kFrozen + 12.0 * kTrained;
  EXPECT_NEAR(reference["train"]["state_bytes"].get<double>() / state, 1, 0.01);

  const nlohmann::json hero = plan("hero");
  constexpr int64_t kEncoder = 22'565'376;
  EXPECT_EQ(hero["frozen_parameters"], kFrozen + kStatistics + kEncoder);
}

// From nothing to answers, prefixes and a report, with a model that has learnt next to nothing.
TEST_F(LatentCommands, PrepareTrainEncodeDecodeExportAndEvaluate) {
  folder_.put("tiny.yaml",
              "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2, "
              "max_bytes: 192}, receivers: {folders: ['bpe=small/latentwire-bpe']}, "
              "train: {steps: 4, batch_size: 4, eval_interval: 4, checkpoint_interval: 2}, "
              "data: {validation_prompts: 4}}\n");
  CommandResult result = command({"train", "tiny.yaml", "run.dir=run"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("small/latentwire-bpe; `fullbore latentwire prepare` trains"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));

  result = command({"latentwire", "prepare", "--folder", "small", "--model", "bpe", "train.steps=2",
                    "train.batch_size=2", "data.validation_prompts=2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = command({"train", "tiny.yaml", "run.dir=run"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("receivers bpe"));
  EXPECT_THAT(result.err, HasSubstr("of the parameters are frozen"));

  // Its teacher comes from files too, of the run's own weights.
  folder_.put("q.jsonl",
              "{\"id\": 1, \"context\": \"a\", \"question\": \"b\", \"answers\": [\"c\"]}\n");
  result = command({"train", "tiny.yaml", "run.dir=taught", "train.steps=1", "data.path=q.jsonl",
                    "data.validation_prompts=0", "loss.distillation_weight=1",
                    "loss.teacher_cache=bf16"});
  ASSERT_EQ(result.exit_code, 0) << result.err;

  // Check 16: stopped and resumed, the same bits.
  ASSERT_EQ(command({"train", "tiny.yaml", "run.dir=parts", "train.steps=2"}).exit_code, 0);
  result = command({"train", "parts", "--resume", "train.steps=4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto weights = [&](const std::string& run) {
    return read(run + "/checkpoints/last/weights.safetensors");
  };
  EXPECT_TRUE(weights("run") == weights("parts"));
  // The recipe of rows is kept: another one is refused.
  result = command({"train", "tiny.yaml", "run.dir=parts", "--resume", "receivers.anchor=So:"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("anchor text 'Answer:'"));

  result = command({"latentwire", "encode", "run", "--context", "The day is Monday.", "--question",
                    "What is the day?", "-o", "prompt.wire", "--bits", "8"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("prompt.wire: 2 x 16 numbers of 8 bits: 34 bytes in place of "
                                     "55, ratio 1.618\n  bpe: 2 vectors in place of "));
  result = command({"latentwire", "decode", "run", "prompt.wire"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("prompt.wire  bpe:"));
  result = command({"latentwire", "export-prefix", "run", "prompt.wire", "-o", "p.safetensors"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("prefix f32 [2, 64]"));

  result = command(
      {"eval", "run", "--prompts", "3", "--bits", "16", "4", "--json", "--picture", "f1.svg"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json report = nlohmann::json::parse(result.out);
  const nlohmann::json& receiver = report["receivers"][0];
  EXPECT_EQ(report["budget"], 2);
  EXPECT_EQ(receiver["bits"][1]["bytes"], 18);
  for (const char* system : {"text", "latent", "head", "question-first"}) {
    const nlohmann::json& scores = receiver["systems"][system];
    EXPECT_GE(scores["nats_per_token"], 0) << system;
    EXPECT_GE(scores["first_top5"], scores["first_accuracy"]) << system;
    EXPECT_GE(scores["accuracy_by_place"].size(), 2) << system;
  }
  // Check 7 of the specification; of a reader of two steps it is seen.
  EXPECT_GT(receiver["systems"]["text"]["nats_per_token"], receiver["log_vocabulary"]);
  EXPECT_EQ(receiver["systems"]["replay"]["nats_per_token"],
            receiver["systems"]["text"]["nats_per_token"]);
  EXPECT_EQ(receiver["replay"]["other_answers"], 0);
  EXPECT_THAT(read("f1.svg"), HasSubstr("bytes of a prompt's wire"));
  result = command({"eval",           "run",        "--prompts", "3", "--systems",        "latent",
                    "question-first", "--budget",   "3",         "4", "--bits",           "16",
                    "--cache",        "check",      "--chunk",   "2", "--max-new-tokens", "3",
                    "--report",       "report.json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("question-first 4"));
  EXPECT_THAT(result.out, HasSubstr("0 of 12 rows are answered otherwise over it"));
  EXPECT_EQ(nlohmann::json::parse(read("report.json"))["budgets"], (std::vector{3, 4}));
  EXPECT_THAT(command({"eval", "run", "--systems", "whole"}).err,
              HasSubstr("--systems whole: text, latent, head, question-first or replay"));
  EXPECT_THAT(command({"eval", "run", "--budget", "0"}).err, HasSubstr("--budget 0: a number"));
  EXPECT_THAT(command({"eval", "run", "--first-top-p", "0.5"}).err,
              HasSubstr("needs a --first-temperature"));

  // Of an encoder that was trained otherwise.
  ASSERT_EQ(
      command({"train", "tiny.yaml", "run.dir=other", "run.seed=7", "train.steps=1"}).exit_code, 0);
  result = command({"latentwire", "decode", "other", "prompt.wire"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("prompt.wire: written by the encoder "));
  const std::string bytes = read("prompt.wire");
  folder_.put("cut.wire", bytes.substr(0, 40));
  EXPECT_THAT(command({"latentwire", "decode", "run", "cut.wire"}).err,
              HasSubstr("cut.wire: cut short: 40 bytes"));
}

}  // namespace
}  // namespace fullbore
