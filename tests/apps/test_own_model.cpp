// A program of one's own: bin/fullbore_own (tests/own), and what its parts refuse.
#include "fullbore/app/own_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
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

  // Springs are no tokens, and their records are whole.
  const CommandResult record = run({"record", "run"});
  ASSERT_EQ(record.exit_code, 0) << record.err;
  EXPECT_EQ(record.err, "");
  const auto own = nlohmann::json::parse(record.out);
  EXPECT_EQ(own["settings"]["model.channels"], "8");
  EXPECT_THAT(output({"runs", "show", "run"}), Not(HasSubstr("tokens a second")));
}

// The command itself knows the folder, but not the model: it does what it can, and names the program for the rest.
TEST_F(OwnProgram, LeavesRunsThatTheCommandReads) {
  for (const char* const channels : {"8", "4"})
    ASSERT_EQ(run({"train", std::string("run.dir=") + channels, "train.steps=20",
                   std::string("model.channels=") + channels})
                  .exit_code,
              0);
  const auto own = nlohmann::json::parse(output({"record", "8"}));
  testing::use_command("fullbore");
  const CommandResult shown = run({"runs", "show", "8"});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.err, "");
  EXPECT_THAT(shown.out, HasSubstr("springs"));
  EXPECT_THAT(shown.out, HasSubstr("20 of 20"));
  EXPECT_THAT(output({"metrics", "8"}), HasSubstr("loss"));
  const CommandResult compared = run({"runs", "compare", "8", "4"});
  EXPECT_EQ(compared.err, "");
  EXPECT_THAT(compared.out, HasSubstr("model.channels"));
  const CommandResult record = run({"record", "8"});
  ASSERT_EQ(record.exit_code, 0) << record.err;
  EXPECT_EQ(record.err, "");
  const auto theirs = nlohmann::json::parse(record.out);
  for (const char* const part : {"metrics", "model", "steps", "rng_key", "hardware"})
    EXPECT_EQ(theirs[part], own[part]) << part;
  EXPECT_EQ(theirs["settings"]["model.channels"], "8");
  EXPECT_EQ(theirs["settings"]["optim.learning_rate"], "0.02");
  const CommandResult other = run({"record", "8", "4"});
  EXPECT_EQ(other.exit_code, 2) << "settings of the model's own tell them apart";
  EXPECT_THAT(other.err, HasSubstr("model.channels"));

  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"train", "8", "--resume"},
                                             {"eval", "8"},
                                             {"eval", "8/checkpoints/last"},
                                             {"export", "8", "-o", "w.safetensors"},
                                             {"diagnose", "8"},
                                             {"plan", "8/config.resolved.yaml"}}) {
    const CommandResult refused = run(words);
    EXPECT_EQ(refused.exit_code, 2) << words.front();
    EXPECT_THAT(refused.err, HasSubstr("model.name is 'springs', which this program has not"));
    EXPECT_THAT(refused.err, HasSubstr("It is the model of the program 'fullbore_own'"))
        << words.front();
  }
  // A copy without the folder around it says no more than the name.
  const std::string copy = folder_ / "copy";
  std::filesystem::copy(folder_ / "8/checkpoints/last/", copy,
                        std::filesystem::copy_options::recursive);
  EXPECT_THAT(run({"eval", "copy"}).err, HasSubstr("most often called 'springs' too"));
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

// Each trial is a process of this program; where a configuration is left out its own job is meant.
TEST_F(OwnProgram, IsSearchedAndGated) {
  folder_.put("space.yaml",
              "sweep: {settings: [train.steps=6, train.eval_interval=3], method: grid}\n"
              "model: {channels: [4, 8]}\n");
  const CommandResult swept = run({"lab", "sweep", "space.yaml", "--out", "sweep"});
  ASSERT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("2 trials of 1 setting"));
  EXPECT_THAT(swept.out, HasSubstr("channels"));
  const CommandResult gated = run({"lab", "gate", "--with", "optim.clip_norm=2", "train.steps=4",
                                   "--seeds", "2", "--margin", "loss=0.5", "--out", "gate"});
  EXPECT_EQ(gated.exit_code, 0) << gated.err;
  EXPECT_THAT(gated.out, HasSubstr("optim.clip_norm: 1 -> 2"));
  EXPECT_THAT(gated.out, HasSubstr("passed: B is no worse than A"));
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

// What a program describes wrongly is refused before it runs, by the line that describes it.
TEST(OwnModel, BatchesThatDoNotFitNameTheirLine) {
  const auto loss = [](Trace&, const BatchTensors& batch) { return Loss(batch[0]); };
  const auto fill = [](uint64_t, BatchView) {};
  const SourceLoc loc{"models/mine.cpp", 12};
  const std::vector<BatchField> fields = {{"x", f32, {8, 2}}, {"y", i32, {8}}};
  const OwnModel model{.loss = loss, .data = batches(fields, fill, loc), .name = "mine"};
  const auto fails = [&](const OwnBatches& data, const OwnBatches& held_out,
                         const std::string& words) {
    OwnModel changed = model;
    changed.data = data;
    changed.evaluation = held_out;
    EXPECT_EQ(usage_error([&] { own_workload(changed); }), words + " (models/mine.cpp:12)");
  };
  const OwnBatches none;
  const auto other = [&](std::vector<BatchField> described) {
    return batches(std::move(described), fill, loc);
  };
  fails(other({}), none, "a batch has no fields: batches({{NAME, DTYPE, SHAPE}}, fill)");
  fails(other({{"x", f32, {8, 2}}, {"", i32, {8}}}), none, "field 1 of the batch has no name");
  fails(other({{"x", f32, {8, -2}}}), none,
        "field 'x' of the batch is f32[8,-2]: an extent is negative");
  const std::string held_out = "what is held out has other fields than what is learned from: ";
  const std::string end = " and x f32, y i32; names, dtypes and their order must be the same";
  fails(model.data, other({fields[0]}), held_out + "x f32" + end);
  fails(model.data, other({fields[0], {"y", f32, {8}}}), held_out + "x f32, y f32" + end);
  fails(model.data, other({fields[1], fields[0]}), held_out + "y i32, x f32" + end);
  OwnModel alike = model;
  alike.evaluation = other({{"x", f32, {4, 2}}, {"y", i32, {4}}});
  EXPECT_EQ(usage_error([&] { own_workload(alike); }), "");

  EXPECT_EQ(usage_error([&] { check_rows(model.data, 0); }), "");
  EXPECT_EQ(usage_error([&] { check_rows(model.data, -1); }), "");
  EXPECT_EQ(
      usage_error([&] {
        check_rows(other({fields[0], {"y", i32, {4}}}), 0);
      }),
      "the fields of a batch have different rows: 8 along axis 0 of 'x', and 4 along axis 0 "
      "of 'y'. A field without rows says so, {NAME, DTYPE, SHAPE, -1}; where none has any, the "
      "model's .batch_axis is -1 (models/mine.cpp:12)");
  EXPECT_EQ(usage_error([&] { check_rows(other({fields[0], {"y", i32, {4}, -1}}), 0); }), "");
  EXPECT_EQ(usage_error([&] { check_rows(other({{"x", f32, {5, 8}}, {"y", i32, {8}}}), 1); }), "");
}

// What functions of the user throw is told as theirs, whatever it is.
TEST(OwnModel, WhatItsFunctionsThrowIsTold) {
  Config config;
  config.train.batch_size = 8;
  const auto told = [&](const std::function<void()>& fails) {
    const OwnModel model{.loss = [=](Trace&, const BatchTensors& batch) -> Loss {
                           fails();
                           return batch[0];
                         },
                         .data = batches({{"x", f32, {8}}}, [=](uint64_t, BatchView) { fails(); }),
                         .name = "mine"};
    alignas(64) float x[8];
    void* const buffers[] = {x};
    std::string filling, tracing;
    try {
      own_source(model.data, 0, config, 0)->fill(7, buffers);
    } catch (const DataError& error) {
      filling = error.what();
    }
    Console console;
    const OpenedWorkload opened = own_workload(model).open(config, console, {});
    Trace trace("t", true);
    const Tensor tensors[] = {trace.batch("x", {DType::f32, {8}})};
    return std::pair(filling, usage_error([&] { opened.loss(config)(trace, tensors); }));
  };
  const auto [filling, tracing] = told([] { throw std::runtime_error("no such file"); });
  EXPECT_EQ(filling, "batch 7 of the model's data could not be filled: no such file");
  EXPECT_EQ(tracing, "the loss of 'mine' threw: no such file");
  const auto [number, also] = told([] { throw 3; });
  EXPECT_THAT(number, HasSubstr("what was thrown is no std::exception"));
  EXPECT_THAT(also, HasSubstr("threw: what was thrown is no std::exception"));
}

// A shown metric may be of training or of evaluation alone, but not of neither.
TEST(OwnModel, ShowsMetricsThatThereAre) {
  const auto loss = [](Trace& trace, const BatchTensors& batch) {
    Loss made = reduce_mean(batch[0], {0});
    made.metrics = {{"close", made.mean}};
    if (!trace.training()) made.metrics.push_back({"held_out", made.mean});
    return made;
  };
  const OwnBatches data = batches({{"x", f32, {8}}}, [](uint64_t, BatchView) {});
  const auto traced = [&](const std::string& shown, bool evaluates) {
    OwnModel model{.loss = loss, .data = data, .name = "mine"};
    if (evaluates) model.evaluation = data;
    model.metrics = {{shown, "share"}};
    Config config;
    config.train.batch_size = 8;
    Console console;
    const LossFunction traces = own_workload(model).open(config, console, {}).job(config).loss;
    std::string errors;
    for (const bool training : {true, false}) {
      if (!training && !evaluates) continue;
      Trace trace("t", training);
      const Tensor tensors[] = {trace.batch("x", {DType::f32, {8}})};
      errors += usage_error([&] { traces(trace, tensors); });
    }
    return errors;
  };
  EXPECT_EQ(traced("close", false), "");
  EXPECT_EQ(traced("close", true), "");
  EXPECT_EQ(traced("held_out", true), "");
  for (const bool evaluates : {false, true})
    EXPECT_EQ(traced("clse", evaluates),
              "the model shows the metric 'clse', which its loss has not. Did you mean 'close'?");
}

}  // namespace
}  // namespace fullbore
