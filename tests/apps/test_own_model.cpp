// A program of one's own: bin/fullbore_own (tests/own), and what its parts refuse.
#include "fullbore/app/own_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/app/own_commands.h"
#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/ckpt/checkpoint.h"
#include "tests/support/command_run.h"
#include "tests/support/evaluate.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class OwnProgram : public ::testing::Test {
 protected:
  OwnProgram() { testing::use_command("fullbore_own"); }
  ~OwnProgram() override { testing::use_command("fullbore"); }
  CommandResult run(const std::vector<std::string>& words) const {
    return run_command(folder_.path(), words);
  }
  std::string output(const std::vector<std::string>& words) const {
    const CommandResult result = run(words);
    EXPECT_EQ(result.exit_code, 0) << fmt::format("{}", words.front()) << ": " << result.err;
    return result.out;
  }

  testing::ScratchFolder folder_;
};

// Without a configuration file, from an empty folder to weights for others.
TEST_F(OwnProgram, TrainsResumesEvaluatesAndExports) {
  const CommandResult trained = run({"train", "run.dir=run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("16 rows of springs"));
  EXPECT_THAT(trained.err, HasSubstr("springs/s"));
  EXPECT_THAT(trained.err, Not(HasSubstr("tok")));
  EXPECT_THAT(trained.err, HasSubstr("close"));
  ASSERT_EQ(run({"train", "run", "--resume", "train.steps=40"}).exit_code, 0);
  const auto evaluated = nlohmann::json::parse(output({"eval", "run", "--json"}));
  EXPECT_EQ(evaluated["batches"], 8);
  EXPECT_LT(evaluated["loss"].get<double>(), 0.45);
  EXPECT_GT(evaluated["close"].get<double>(), 0.3);
  output({"export", "run", "-o", "weights.safetensors"});
  const Checkpoint weights = read_checkpoint(folder_ / "weights.safetensors").take_or_throw();
  ASSERT_EQ(weights.tensors().size(), 4U);
  ASSERT_NE(weights.find("first.weight"), nullptr);
  EXPECT_EQ(weights.find("first.weight")->type.shape, Shape({8, 2}));

  // The command itself knows the folder, but not the model.
  testing::use_command("fullbore");
  EXPECT_THAT(output({"runs", "show", "run"}), HasSubstr("40"));
  EXPECT_THAT(output({"metrics", "run"}), HasSubstr("loss"));
  const CommandResult refused = run({"train", "run", "--resume"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("model.name is 'springs', which this program has not"));
  EXPECT_THAT(refused.err, HasSubstr("most often called 'springs' too"));
}

// By a mapping, from a file of other names and layouts, and what it lacks is named.
TEST_F(OwnProgram, StartsFromWeightsOfOthers) {
  output({"train", "run.dir=run", "train.steps=5"});
  output({"export", "run", "-o", "ours.safetensors"});
  const Checkpoint ours = read_checkpoint(folder_ / "ours.safetensors").take_or_throw();
  const auto values = [&](const char* name) {
    const StoredTensor& tensor = *ours.find(name);
    std::vector<float> read(static_cast<size_t>(tensor.type.elements()));
    ours.read(tensor, read.data()).take_or_throw();
    return read;
  };
  const std::vector<float> first = values("first.weight"), bias = values("first.bias"),
                           last = values("last.weight"), end = values("last.bias");
  std::vector<float> kernel(first.size());
  for (size_t output = 0; output < 8; ++output)
    for (size_t input = 0; input < 2; ++input)
      kernel[input * 8 + output] = first[output * 2 + input];
  const std::vector<NamedTensor> theirs = {{"dense.kernel", {DType::f32, {2, 8}}, kernel.data()},
                                           {"dense.bias", {DType::f32, {8}}, bias.data()},
                                           {"out", {DType::f32, {8}}, last.data()},
                                           {"out_bias", {DType::f32, {1}}, end.data()}};
  write_checkpoint(folder_ / "theirs.safetensors", theirs, {}).take_or_throw();
  folder_.put("map.yaml",
              "file: {weights: theirs.safetensors}\n"
              "tensors:\n"
              "  first.weight: dense.kernel | transpose 1 0\n"
              "  first.*: dense.*\n"
              "  last.weight: out | reshape 1 8\n"
              "  last.bias: out_bias\n");
  const auto loss = [&](const std::string& checkpoint) {
    return nlohmann::json::parse(output({"eval", checkpoint, "--json"}))["loss"].get<double>();
  };
  for (const char* const from : {"ours.safetensors", "map.yaml"}) {
    const std::string second = std::string("from-") + from;
    const CommandResult started =
        run({"train", "run.dir=" + second, "train.steps=1", "train.eval_interval=0",
             std::string("model.initialize_from=") + from});
    ASSERT_EQ(started.exit_code, 0) << started.err;
    EXPECT_THAT(started.err, HasSubstr("4 of 4 tensors taken"));
    EXPECT_EQ(loss(second + "/checkpoints/step-00000000"), loss("run")) << from;
  }
  const CommandResult refused =
      run({"train", "run.dir=none", "model.initialize_from=theirs.safetensors"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("first.weight: the file has no 'first.weight'"));
  const CommandResult other =
      run({"train", "run.dir=none", "model.channels=3", "model.initialize_from=ours.safetensors"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("first.weight: f32[3,2] here, f32[8,2] there"));
}

TEST_F(OwnProgram, HasItsKeysAndItsBatchSizeInEveryCommand) {
  folder_.put("small.yaml", "model: {channels: 2}\n");
  const auto plan = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "plan");
    words.emplace_back("--json");
    return nlohmann::json::parse(output(words));
  };
  EXPECT_EQ(plan({})["parameters"], 2 * 8 + 8 + 8 + 1);
  EXPECT_EQ(plan({"model.channels=3"})["parameters"], 2 * 3 + 3 + 3 + 1);
  const nlohmann::json small = plan({"small.yaml", "train.batch_size=32"});
  EXPECT_EQ(small["parameters"], 2 * 2 + 2 + 2 + 1);
  EXPECT_EQ(small["unit"], "springs");
  EXPECT_THAT(output({"plan", "small.yaml"}), HasSubstr("Training step, 16 springs"))
      << "own batch";
  EXPECT_THAT(output({"plan", "train.batch_size=32"}), HasSubstr("Training step, 32 springs"));
  EXPECT_THAT(output({"config", "model.channels"}), HasSubstr("default 8"));
  EXPECT_THAT(output({"train", "--help"}), HasSubstr("\n  fullbore_own train"));
  EXPECT_THAT(output({"completion", "bash"}), HasSubstr("_fullbore_own"));
  const std::string manual = output({"manual"});
  EXPECT_THAT(manual, HasSubstr(".TH \"FULLBORE_OWN\" 1"));
  EXPECT_THAT(manual, HasSubstr(".SS \"fullbore_own train\""));
  EXPECT_THAT(manual, Not(HasSubstr("\nfullbore ")));
  const CommandResult wrong = run({"train", "model.chanels=3"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("fullbore_own: config: command line: unknown key"));
  EXPECT_THAT(wrong.err, HasSubstr("Did you mean 'model.channels'?"));
  EXPECT_THAT(run({"train", "no.yaml"}).err, HasSubstr("no.yaml"));
}

TEST_F(OwnProgram, OpsTellHowALoopIsDifferentiated) {
  const auto list = nlohmann::json::parse(output({"ops", "--json"}));
  const auto loop = std::ranges::find(list, "loop", [](const auto& op) { return op["name"]; });
  ASSERT_NE(loop, list.end());
  EXPECT_THAT((*loop)["gradient"].get<std::string>(), HasSubstr("another loop"));
  EXPECT_EQ((*loop)["differentiable"], true);
}

TEST_F(OwnProgram, OpsTellAttributesAndSignatures) {
  const auto list = nlohmann::json::parse(output({"ops", "softmax", "--json"}));
  ASSERT_EQ(list.size(), 1U);
  const nlohmann::json& softmax = list[0];
  EXPECT_EQ(softmax["attributes"][0]["name"], "axis");
  EXPECT_EQ(softmax["attributes"][0]["type"], "integer");
  const auto operands = nlohmann::json::parse(
      R"([{"name": "x", "required": true, "dtypes": ["f64", "f32", "bf16", "f16"],
           "ranks": [1, 3], "gradient": true}])");
  EXPECT_EQ(softmax["operands"], operands);
  EXPECT_EQ(softmax["results"][0]["shape"], "as x");
  EXPECT_THAT(softmax["examples"][0].get<std::string>(), HasSubstr("softmax(f32[1]) {axis=0}"));
  const std::string text = output({"ops", "select"});
  EXPECT_THAT(text, HasSubstr("condition            bool\n"));
  EXPECT_THAT(text, HasSubstr("dtype as a, shape as condition"));
}

TEST(OwnCommands, TheProgramsOwnJobStandsInForAFile) {
  OptionDescription config, settings, flag, number;
  config.positional = "CONFIG";
  settings.positional = "key=value";
  flag.long_names = {"json"};
  number.long_names = {"steps"};
  number.takes_value = true;
  const CommandDescription bench{"bench", "", "", {flag, number, config, settings}, {}};
  OptionDescription run;
  run.positional = "RUN";
  const CommandDescription eval{"eval", "", "", {run}, {}};
  const CommandDescription root{"mine", "", "", {}, {bench, eval}};
  const auto words = [&](std::vector<std::string> given) {
    return with_default_job(root, std::move(given));
  };
  EXPECT_THAT(words({"bench"}), ElementsAre("bench", "default"));
  EXPECT_THAT(words({"bench", "a.b=1"}), ElementsAre("bench", "default", "a.b=1"));
  EXPECT_THAT(words({"bench", "--json", "a.b=1"}),
              ElementsAre("bench", "--json", "default", "a.b=1"));
  EXPECT_THAT(words({"bench", "--steps", "5"}), ElementsAre("bench", "--steps", "5", "default"));
  EXPECT_THAT(words({"bench", "x.yaml", "a.b=1"}), ElementsAre("bench", "x.yaml", "a.b=1"));
  EXPECT_THAT(words({"bench", "--help"}), ElementsAre("bench", "--help"));
  EXPECT_THAT(words({"eval"}), ElementsAre("eval"));
  EXPECT_THAT(words({"none"}), ElementsAre("none"));
}

TEST(BatchView, RefusesOtherNamesAndDtypes) {
  const std::vector<BatchField> fields = {{"images", f32, {2, 3}}, {"labels", i32, {2}}};
  alignas(64) float images[6] = {};
  alignas(64) int32_t labels[2] = {};
  void* const buffers[] = {images, labels};
  const Config config;
  const BatchView batch(fields, buffers, config, 1, 0);
  batch.f32("images")[5] = 7;
  batch.i32("labels")[1] = 3;
  EXPECT_EQ(images[5], 7);
  EXPECT_EQ(labels[1], 3);
  EXPECT_EQ(batch.rows(), 2);
  const SourceLoc loc{"models/mine.cpp", 12};
  EXPECT_EQ(usage_error([&] { batch.f32("image", loc); }),
            "the batch has no field 'image'. Did you mean 'images'? It has images, labels "
            "(models/mine.cpp:12)");
  EXPECT_EQ(usage_error([&] { batch.f32("labels", loc); }),
            "field 'labels' of the batch is i32[2], and was asked for as f32: call i32() "
            "(models/mine.cpp:12)");
}

// Labels of sequences beside [time, batch, channels].
TEST(OwnSource, FieldsOfFewerAxesHaveTheBatchFirst) {
  Config config;
  config.train.batch_size = 6;
  const OwnBatches own =
      batches({{"x", f32, {5, 8, 3}}, {"y", i32, {8}}}, [](uint64_t, const BatchView&) {});
  const std::vector<BatchField> fields = own_source(own, 1, config, 0)->fields();
  EXPECT_EQ(fields[0].type.shape, Shape({5, 6, 3}));
  EXPECT_EQ(fields[1].type.shape, Shape({6}));
  EXPECT_EQ(fields[1].batch_axis, 0);
}

TEST(BatchTensors, RefuseWhatABatchHasNot) {
  Trace trace("t", true);
  const std::vector<BatchField> fields = {{"images", f32, {2, 3}}, {"labels", i32, {2}}};
  const Tensor tensors[] = {trace.batch("images", fields[0].type),
                            trace.batch("labels", fields[1].type)};
  const Config config;
  const BatchTensors batch(fields, tensors, config);
  EXPECT_EQ(batch["labels"].value(), tensors[1].value());
  EXPECT_EQ(batch[0].value(), tensors[0].value());
  const int line = __LINE__ + 1;
  const std::string place = usage_error([&] { static_cast<void>(batch[2]); });
  EXPECT_THAT(place, HasSubstr("the batch has 2 fields, and number 2 was asked for"));
  EXPECT_THAT(place, HasSubstr(fmt::format("test_own_model.cpp:{}", line)));
  EXPECT_THAT(usage_error([&] { static_cast<void>(batch["lables"]); }),
              HasSubstr("Did you mean 'labels'?"));
}

TEST(OwnModel, WhatIsMissingIsSaid) {
  const auto loss = [](Trace&, const BatchTensors& batch) { return Loss(batch[0]); };
  const auto fill = [](uint64_t, BatchView) {};
  const auto refusal = [](const OwnModel& model) {
    return usage_error([&] {
      const Workload workload = own_workload(model);
      Config config;
      config.train.batch_size = 4;
      own_source(model.data, model.batch_axis, config, 0);
    });
  };
  OwnModel model{.loss = loss, .data = batches({{"x", f32, {8, 2}}}, fill), .name = "mine"};
  EXPECT_EQ(refusal(model), "");
  const auto with = [&](const std::function<void(OwnModel&)>& change) {
    OwnModel changed = model;
    change(changed);
    return refusal(changed);
  };
  EXPECT_THAT(with([](OwnModel& m) { m.loss = {}; }), HasSubstr("'mine' has no loss"));
  EXPECT_THAT(with([](OwnModel& m) { m.data = {}; }), HasSubstr("'mine' has no data"));
  EXPECT_THAT(with([](OwnModel& m) { m.unit = ""; }), HasSubstr("has no unit"));
  EXPECT_THAT(with([](OwnModel& m) { m.batch_axis = 2; }),
              HasSubstr("the batch is axis 2 of 'x', which is f32[8,2]"));
  EXPECT_THAT(with([](OwnModel& m) { m.data.fields.push_back(m.data.fields[0]); }),
              HasSubstr("two fields of the batch are called 'x'"));
  EXPECT_THAT(with([](OwnModel& m) { m.data.other_shapes = {m.data.fields}; }),
              HasSubstr("several shapes need shape_at"));
  EXPECT_THAT(with([](OwnModel& m) {
                m.data.other_shapes = {{{"y", f32, {4, 2}}}};
                m.data.shape_at = [](uint64_t) { return 0; };
              }),
              HasSubstr("have other fields"));
}

}  // namespace
}  // namespace fullbore
