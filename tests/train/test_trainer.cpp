#include "fullbore/train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "fullbore/base/files.h"
#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/device/cpu/codegen/jit_kernel.h"
#include "fullbore/monitor/process.h"
#include "fullbore/monitor/run_summary.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/train/bad_step.h"
#include "tests/support/device.h"
#include "tests/train/trainer_test.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(TrainerTest, LearnsAFunctionThatIsNoLanguageModel) {
  job_.options.steps = 300;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_LT(json["final_validation_loss"], 1e-3);
  EXPECT_EQ(json["parameters"], kWidth);
  EXPECT_THAT(file("run/config.resolved.yaml"), ::testing::HasSubstr(job_.config));

  State state({{"weight", Role::parameter, {DType::f32, {kWidth}}}}, cpu_device(1));
  restore(open_checkpoint(folder_ / "run").folder, tensor_slots(state), UnknownTensors::kIgnore)
      .take_or_throw();
  const std::vector<float> weight = state.read<float>("weight");
  EXPECT_NEAR(weight[0], 1, 0.05);
  EXPECT_NEAR(weight[1], -2, 0.05);
  EXPECT_NEAR(weight[2], 3, 0.05);
}

TEST_F(TrainerTest, EverySecondOfARunHasAPhase) {
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  const nlohmann::json& phases = json["phase_seconds"];
  double sum = 0;
  for (const auto& [phase, seconds] : phases.items()) sum += seconds.get<double>();
  const auto wall = json["wall_seconds"].get<double>();
  EXPECT_NEAR(sum, wall, 0.01 * wall);
  for (const char* phase : {"start", "data", "step", "evaluation", "checkpoint", "host"})
    EXPECT_GT(phases[phase].get<double>(), 0) << phase;
  EXPECT_EQ(phases["rollouts"], 0);
}

TEST_F(TrainerTest, SensorsAreSampledAndAlarmsTold) {
  const std::string chip = folder_ / "root/sys/class/hwmon/hwmon0";
  fs::create_directories(chip);
  write_file_atomically(chip + "/name", "coretemp\n").take_or_throw();
  write_file_atomically(chip + "/temp1_input", "99000\n").take_or_throw();
  job_.options.sensors = {.enabled = true,
                          .interval_seconds = 3600,
                          .alarms = {.cpu_celsius = 90},
                          .sensors = {.root = folder_ / "root", .nvml = folder_ / "none"}};
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const std::string samples = file("run/sensors.csv");
  EXPECT_THAT(samples, HasSubstr("step,seconds,time,cpu.temperature [C],disk.free [MiB]\n0,"));
  EXPECT_THAT(samples, HasSubstr(fmt::format("\n{},", job_.options.steps)));
  EXPECT_THAT(file("run/log.txt"),
              HasSubstr("warning: step 0: the processor is at 99 C (alarms.cpu_celsius=90)"));
  EXPECT_THAT(
      file("run/metrics.jsonl"),
      HasSubstr(R"({"kind":"alarm","step":0,"cause":"cpu temperature","raised":true,"value":99)"));
}

TEST_F(TrainerTest, AKernelThatCannotBeMadeIsToldAndReplaced) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  {
    const PlantedCodeFailure failure("mul");
    ASSERT_EQ(train_in("planted"), ExitCode::kOk);
  }
  const auto whole = nlohmann::json::parse(file("whole/summary.json"));
  const auto planted = nlohmann::json::parse(file("planted/summary.json"));
  EXPECT_FALSE(whole.contains("fallbacks"));
  const std::vector<KernelFallback> fallbacks = fallbacks_of(planted);
  ASSERT_FALSE(fallbacks.empty());
  EXPECT_THAT(fallbacks.front().node, HasSubstr("mul"));
  EXPECT_THAT(file("planted/log.txt"),
              HasSubstr(fmt::format("warning: {} ({}): no kernel (a failure was planted)",
                                    fallbacks.front().node, fallbacks.front().location)));
  EXPECT_NEAR(planted["final_train_loss"].get<double>(), whole["final_train_loss"].get<double>(),
              1e-4 * whole["final_train_loss"].get<double>());
}

TEST_F(TrainerTest, EveryEffortOfCompilationLearnsTheSame) {
  double full = 0;
  for (const CompileEffort effort :
       {CompileEffort::full, CompileEffort::fast, CompileEffort::off}) {
    job_.options.compile.compile = effort;
    const std::string name(compile_effort_name(effort));
    ASSERT_EQ(train_in(name), ExitCode::kOk);
    const double loss =
        nlohmann::json::parse(file(name + "/summary.json"))["final_train_loss"].get<double>();
    if (effort == CompileEffort::full) full = loss;
    EXPECT_NEAR(loss, full, 1e-4 * full) << name;
  }
  EXPECT_THAT(file("off/log.txt"), HasSubstr(", engine.compile=off"));
}

TEST_F(TrainerTest, SaysWhatItTrainsWith) {
  job_.options.compile.passes.disabled = {"constant_folding"};
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  for (const char* const line :
       {"device   cpu (", " 2 workers, instructions ", ", fp32", "batch    ", "optim    ",
        "passes   switched off: constant_folding"})
    EXPECT_THAT(file("run/log.txt"), HasSubstr(line));
}

TEST_F(TrainerTest, TellsWhereTheStartWent) {
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::ordered_json::parse(file("run/summary.json"));
  double sum = 0;
  std::string parts;
  for (const auto& [part, seconds] : json["start_seconds"].items()) {
    EXPECT_GE(seconds.get<double>(), 0) << part;
    sum += seconds.get<double>();
    parts += part + " ";
  }
  EXPECT_EQ(parts, "data trace state save compile memory evaluation step ");
  EXPECT_NEAR(sum, json["seconds_to_first_step"].get<double>(), 1e-9);
  EXPECT_THAT(file("run/log.txt"), HasSubstr("first step after "));
  EXPECT_THAT(file("run/log.txt"), HasSubstr(", compile "));
}

// Measuring takes a second that the first step need not wait for.
TEST_F(TrainerTest, PeaksAreMeasuredWhenTheFirstStepIsMade) {
  const std::string common = getenv("FULLBORE_CACHE");
  const std::string own = folder_ / "cache";
  fs::create_directory(own);
  fs::permissions(own, fs::perms::owner_all);
  setenv("FULLBORE_CACHE", own.c_str(), 1);
  const auto kept_peaks = [&] {
    std::vector<std::string> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(own))
      if (entry.path().filename().string().starts_with("machine-")) files.push_back(entry.path());
    return files;
  };
  size_t kept = 7;
  std::string last_part;
  job_.started = [&](const std::vector<StartPart>& parts) {
    kept = kept_peaks().size();
    last_part = parts.back().name;
  };
  ASSERT_EQ(train_in("cold"), ExitCode::kOk);
  EXPECT_EQ(kept, 0U) << "measured before the first step";
  EXPECT_EQ(last_part, "step");
  ASSERT_EQ(kept_peaks().size(), 1U);
  std::string log = file("cold/log.txt");
  EXPECT_LT(log.find("first step after"), log.find("by this machine's roofline"));
  EXPECT_LT(log.find("by this machine's roofline"), log.find("step 10/40"));
  EXPECT_GT(nlohmann::json::parse(file("cold/summary.json"))["utilisation"], 0);
  // What is kept is believed: measuring would find less, and say so.
  auto json = nlohmann::json::parse(read_file(kept_peaks()[0]).value());
  json["fp32_flops"] = 1;
  const std::string text = json.dump();
  ASSERT_TRUE(write_file_atomically(kept_peaks()[0], text).ok());
  ASSERT_EQ(train_in("warm"), ExitCode::kOk);
  EXPECT_EQ(read_file(kept_peaks()[0]).value(), text) << "measured again";
  EXPECT_GT(nlohmann::json::parse(file("warm/summary.json"))["utilisation"], 10);
  setenv("FULLBORE_CACHE", common.c_str(), 1);
}

// The State of step 0, drawn again beside the steps that change it, has the bits that are written where the run
// waits for them.
TEST_F(TrainerTest, TheFirstSaveIsOfStepZeroHoweverItIsMade) {
  job_.options.optimizer.ema_decay = 0.9;
  job_.options.evaluation_interval = 0;
  job_.options.saves.retention = 0;
  ASSERT_EQ(train_in("beside"), ExitCode::kOk);
  job_.options.saves.background = false;
  ASSERT_EQ(train_in("waiting"), ExitCode::kOk);
  const auto files = [&](const std::string& run) {
    const std::string path = run + "/checkpoints/step-00000000";
    std::map<std::string, std::string> contents;
    for (const char* name : {"weights", "averages", "optimizer"})
      contents[name] = file(fmt::format("{}/{}.safetensors", path, name));
    return contents;
  };
  EXPECT_TRUE(files("beside") == files("waiting"));
  EXPECT_FALSE(files("beside")["weights"] == file("beside/checkpoints/last/weights.safetensors"));
  // Values of another origin cannot be drawn again.
  job_.options.saves.background = true;
  job_.initialize = [](State& state) { Edited<float>(state, "weight")[0] = 17; };
  ASSERT_EQ(train_in("given"), ExitCode::kOk);
  State state({{"weight", Role::parameter, {DType::f32, {kWidth}}}}, cpu_device(1));
  restore(open_checkpoint(folder_ / "given/checkpoints/step-00000000").folder, tensor_slots(state),
          UnknownTensors::kIgnore)
      .take_or_throw();
  EXPECT_EQ(state.read<float>("weight")[0], 17);
}

TEST_F(TrainerTest, StagesMakeTheSameBitsAsOneRun) {
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  for (const int64_t steps : {10, 13, 30}) {
    job_.options.steps = steps;
    ASSERT_EQ(train_in("parts", steps != 10), ExitCode::kOk);
  }
  job_.options.steps = 40;
  ASSERT_EQ(train_in("parts", true), ExitCode::kOk);
  EXPECT_TRUE(last("whole") == last("parts"));
}

TEST_F(TrainerTest, NeitherWorkersNorLoadersChangeTheBits) {
  ASSERT_EQ(train_in("two"), ExitCode::kOk);
  job_.options.workers = 1;
  job_.options.loader = {.workers = 0, .prefetch = 1};
  ASSERT_EQ(train_in("one"), ExitCode::kOk);
  EXPECT_TRUE(last("one") == last("two"));
}

TEST_F(TrainerTest, RunsWithoutValidation) {
  job_.validation.reset();
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_TRUE(json["final_validation_loss"].is_null());
  EXPECT_TRUE(fs::exists(folder_ / "run/checkpoints/last"));
  EXPECT_FALSE(fs::exists(folder_ / "run/checkpoints/best"));
}

// The tensors only: what is said of evaluations differs.
TEST_F(TrainerTest, EvaluationDisturbsNothing) {
  const auto tensors = [&](const std::string& run) {
    const CheckpointFolder folder = open_checkpoint(folder_ / (run + "/checkpoints/last")).folder;
    return std::pair(folder.manifest().at("weights.safetensors").hash,
                     folder.manifest().at("optimizer.safetensors").hash);
  };
  ASSERT_EQ(train_in("often"), ExitCode::kOk);
  job_.options.evaluation_interval = 1;
  ASSERT_EQ(train_in("always"), ExitCode::kOk);
  job_.validation.reset();
  ASSERT_EQ(train_in("never"), ExitCode::kOk);
  EXPECT_EQ(tensors("often"), tensors("never"));
  EXPECT_EQ(tensors("always"), tensors("never"));
}

TEST_F(TrainerTest, HowItIsSavedDoesNotChangeTheBits) {
  ASSERT_EQ(train_in("plain"), ExitCode::kOk);
  job_.options.saves = {.retention = 0, .compression = Compression::all, .background = false};
  job_.options.steps = 23;
  ASSERT_EQ(train_in("packed"), ExitCode::kOk);
  EXPECT_TRUE(fs::exists(folder_ / "packed/checkpoints/last/weights.safetensors.fbz"));
  EXPECT_TRUE(fs::exists(folder_ / "packed/checkpoints/step-00000010")) << "0 keeps all";
  job_.options.steps = 40;
  job_.options.saves = {};
  ASSERT_EQ(train_in("packed", true), ExitCode::kOk);
  EXPECT_TRUE(last("plain") == last("packed"));
}

TEST_F(TrainerTest, StopsWhenThereIsNothingToGain) {
  job_.options.optimizer.schedule.learning_rate = 0;
  job_.options.optimizer.schedule.minimum_learning_rate = 0;
  job_.options.patience = 3;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_EQ(json["status"], "completed");
  EXPECT_EQ(json["steps"], 30) << "the best at 0, none better at 10, 20, 30";
  EXPECT_EQ(open_checkpoint(folder_ / "run/checkpoints/last").record.step, 30);
  EXPECT_EQ(open_checkpoint(folder_ / "run/checkpoints/best").record.step, 0);
  ASSERT_EQ(train_in("run", true), ExitCode::kOk) << "complete already";
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["steps"], 30);
  job_.options.patience = 4;
  ASSERT_EQ(train_in("run", true), ExitCode::kOk);
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["steps"], 40);
}

TEST_F(TrainerTest, MetricsThatNobodyWantsAreNotComputed) {
  const auto keys = [&](const std::string& run) {
    const std::string lines = file(run + "/metrics.jsonl");
    const size_t begin = lines.find("{\"kind\":\"train\"");
    return nlohmann::json::parse(lines.substr(begin, lines.find('\n', begin) - begin));
  };
  job_.options.optimizer.norms = "parameters";
  ASSERT_EQ(train_in("all"), ExitCode::kOk);
  job_.options.metrics = MetricsLevel::loss;
  ASSERT_EQ(train_in("loss"), ExitCode::kOk);
  EXPECT_TRUE(keys("all").contains("gradient_norm/weight")) << keys("all");
  EXPECT_TRUE(keys("loss").contains("loss"));
  EXPECT_FALSE(keys("loss").contains("gradient_norm/weight"));
  EXPECT_FALSE(keys("loss").contains("learning_rate"));
  const auto flops = [&](const std::string& run) {
    return nlohmann::json::parse(file(run + "/summary.json"))["flops_per_step"].get<double>();
  };
  EXPECT_LT(flops("loss"), flops("all"));
  EXPECT_TRUE(last("all") == last("loss"));
}

/// Batches of which some are spoiled.
class Spoiled : public Lines {
 public:
  Spoiled(uint64_t first, uint64_t last, float value) : first_(first), last_(last), value_(value) {}
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    Lines::fill(position, buffers);
    if (position >= first_ && position <= last_) static_cast<float*>(buffers[1])[0] = value_;
  }

 private:
  uint64_t first_;
  uint64_t last_;
  float value_;
};

// What is told of steps changes no bit of what they compute.
TEST_F(TrainerTest, DetailIsToldAndDisturbsNothing) {
  const auto records = [&](const std::string& run) {
    std::vector<nlohmann::json> found;
    std::istringstream lines(file(run + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json record = nlohmann::json::parse(line);
      if (record["kind"] == "train") found.push_back(std::move(record));
    }
    return found;
  };
  for (const char* name : {"off", "info", "debug-training", "debug-performance"}) {
    job_.options.detail = detail(name);
    ASSERT_EQ(train_in(name), ExitCode::kOk);
    EXPECT_EQ(last(name), last("off")) << name;
  }
  EXPECT_TRUE(records("off").empty());
  EXPECT_THAT(file("off/log.txt"), Not(HasSubstr("step 10/40  loss")));
  EXPECT_THAT(file("off/log.txt"), HasSubstr("validation loss"));
  ASSERT_EQ(records("info").size(), 4U);
  EXPECT_FALSE(records("info")[0].contains("step_seconds"));
  EXPECT_THAT(file("info/log.txt"), Not(HasSubstr("gradient_norm")));
  const nlohmann::json training = records("debug-training").at(1);
  EXPECT_GT(training["step_seconds"], 0);
  EXPECT_GE(training["wait_seconds"], 0);
  EXPECT_FALSE(training.contains("ms/idle"));
  EXPECT_THAT(file("debug-training/log.txt"), HasSubstr("gradient_norm"));
  const std::vector<nlohmann::json> performance = records("debug-performance");
  ASSERT_EQ(performance.size(), 4U);
  for (const nlohmann::json& record : performance) {
    double all = 0;
    for (const auto& [key, value] : record.items())
      if (key.starts_with("ms/")) all += value.get<double>();
    EXPECT_NEAR(all, record["step_seconds"].get<double>() * 1e3, 1e-6);
    EXPECT_GT(record.value("ms/optimizer", 0.0), 0);
    EXPECT_GT(record["arena_bytes"], 0);
    EXPECT_GE(record["planned_bytes"], record["arena_bytes"]);
  }
  EXPECT_THAT(file("debug-performance/log.txt"), HasSubstr("; ms: "));
}

TEST_F(TrainerTest, AStepThatIsNotFiniteIsSkippedAndKept) {
  job_.training = std::make_shared<Spoiled>(24, 24, INFINITY);
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["skipped_steps"], 1);
  EXPECT_THAT(file("run/log.txt"), HasSubstr("step 25 is not finite: loss inf"));
  EXPECT_THAT(file("run/log.txt"), HasSubstr("It was skipped."));
  const LoadedStep bad = load_bad_step(folder_ / "run/bad_steps/step-00000025");
  EXPECT_EQ(bad.step.step, 25);
  EXPECT_EQ(bad.step.finding, "batch 'y' f32[8] held an infinity before the step");
  EXPECT_TRUE(std::isinf(bad.step.results.at("loss")));
  const int y = bad.step.graph.find_input("y");
  EXPECT_TRUE(std::isinf(bad.inputs[static_cast<size_t>(y)].at(0)));
  // All that the step began with: made again from the step before, it is this very State.
  job_.options.steps = 24;
  job_.options.optimizer.schedule.total_steps = 40;
  ASSERT_EQ(train_in("before"), ExitCode::kOk);
  State state(state_entries(bad.step.graph), cpu_device(2));
  restore(open_checkpoint(folder_ / "before/checkpoints/last").folder, tensor_slots(state))
      .take_or_throw();
  for (size_t i = 0; i < bad.step.graph.inputs().size(); ++i) {
    const Graph::Input& input = bad.step.graph.inputs()[i];
    if (!is_state(input.role)) continue;
    const Literal expected = Literal::from_bytes(bad.step.graph.type(input.value),
                                                 state.read<std::byte>(input.name).data());
    EXPECT_EQ(bad.inputs[i].bytes(), expected.bytes()) << input.name;
  }
}

TEST_F(TrainerTest, ARunWithASkippedStepResumesToTheSameBits) {
  job_.training = std::make_shared<Spoiled>(12, 13, NAN);
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  job_.options.steps = 13;
  ASSERT_EQ(train_in("parts"), ExitCode::kOk);
  job_.options.steps = 40;
  ASSERT_EQ(train_in("parts", true), ExitCode::kOk);
  EXPECT_TRUE(last("whole") == last("parts"));
}

TEST_F(TrainerTest, TheNodeThatMadeTheFirstBadValueIsNamed) {
  job_.training = std::make_shared<Spoiled>(24, 24, 0.0F);
  job_.loss = [](Trace& trace, std::span<const Tensor> batch) {
    const Scope scope(trace, "ratio");
    return squared_error(trace, batch).mean + reduce_mean(batch[1] / batch[1], {0}) * 1e-3;
  };
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const LoadedStep bad = load_bad_step(folder_ / "run/bad_steps/step-00000025");
  EXPECT_THAT(bad.step.finding, HasSubstr("div in ratio (train/test_trainer.cpp:"));
  EXPECT_THAT(bad.step.finding, HasSubstr("made NaN first"));
  // The device did what the model says.
  const std::shared_ptr<Device> device = cpu_device(2);
  EXPECT_EQ(first_difference(bad.step.graph, bad.inputs, device, bad.step.compile), "");
  // And the comparison sees it where it did not.
  std::vector<Literal> inputs = bad.inputs;
  EXPECT_NE(first_difference(bad.step.graph, inputs, open_device("null"), bad.step.compile), "");
}

// What was saved at 20 stays, nothing after it is.
TEST_F(TrainerTest, StopsWhenTooManyInARowAreNotFinite) {
  job_.training = std::make_shared<Spoiled>(24, 60, NAN);
  job_.options.max_skipped_steps = 8;
  job_.options.evaluation_interval = 0;
  try {
    train_in("run");
    FAIL() << "it went on";
  } catch (const NumericalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("step 32 is not finite: loss nan"));
    EXPECT_THAT(error.what(), HasSubstr("the last of 8 in a row"));
    EXPECT_THAT(error.what(), HasSubstr("The last good state is"));
  }
  EXPECT_EQ(open_checkpoint(folder_ / "run/checkpoints/last").record.step, 20);
  const auto json = nlohmann::json::parse(file("run/summary.json"));
  EXPECT_EQ(json["status"], "failed");
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("step 32"));
  job_.training = std::make_shared<Lines>();
  ASSERT_EQ(train_in("run", true), ExitCode::kOk) << "with better data it goes on";
}

// From the checkpoint at 20 with half the rate, twice: the second time the bad batches have not ended.
TEST_F(TrainerTest, GoesBackToTheLastCheckpointAtHalfTheRate) {
  job_.training = std::make_shared<Spoiled>(23, 30, NAN);
  job_.options.max_skipped_steps = 4;
  job_.options.max_restores = 2;
  job_.options.optimizer.adjustable = true;
  job_.options.evaluation_interval = 0;
  job_.options.saves.retention = 9;
  ASSERT_EQ(train_in("whole"), ExitCode::kOk);
  EXPECT_EQ(nlohmann::json::parse(file("whole/summary.json"))["skipped_steps"], 8);
  const std::string log = file("whole/log.txt");
  EXPECT_THAT(log, HasSubstr("Going on from the weights of step 20 with 0.5 of the learning rate; "
                             "restored 1 of 2 times"));
  EXPECT_THAT(log, HasSubstr("Going on from the weights of step 20 with 0.25"));

  // Resumed behind a checkpoint that knows of the restores, or from before them, as after a kill, it makes the same bits.
  job_.options.optimizer.schedule.total_steps = 40;
  for (const bool killed : {false, true}) {
    const std::string run = killed ? "killed" : "stopped";
    job_.options.steps = killed ? 29 : 36;
    ASSERT_EQ(train_in(run), ExitCode::kOk);
    if (killed) std::filesystem::remove_all(folder_ / "killed/checkpoints/step-00000029");
    job_.options.steps = 40;
    ASSERT_EQ(train_in(run, true), ExitCode::kOk);
    EXPECT_THAT(file(run + "/log.txt"), HasSubstr(killed ? "at step 20\n" : "at step 36\n"));
    EXPECT_TRUE(last(run) == last("whole")) << run;
  }

  job_.options.max_restores = 1;
  EXPECT_THROW(train_in("once"), NumericalError);
}

// A parameter grows by a factor of 1e9 from step to step: from 1 it leaves f32 in the fifth update. The loss of the next
// step shows it, or nothing does before it would be saved.
TEST_F(TrainerTest, AnUpdateThatOverflowsIsNamedInItsStep) {
  job_.options.optimizer.weight_decay = 1e9;
  job_.options.optimizer.schedule.learning_rate = 1;
  job_.options.optimizer.schedule.minimum_learning_rate = 1;
  job_.options.evaluation_interval = 0;
  for (const bool loss_shows_it : {false, true}) {
    job_.loss = [&](Trace& trace, std::span<const Tensor> batch) -> Loss {
      const Tensor idle = trace.parameter("idle", {2, 2}, Initializer::ones());
      const Tensor loss =
          squared_error(trace, batch).mean + reduce_sum(minimum(abs(idle), 1.0), {0, 1});
      return loss_shows_it ? loss + reduce_sum(stop_gradient(idle) * 0.0, {0, 1}) : loss;
    };
    const std::string run = loss_shows_it ? "shown" : "hidden";
    try {
      train_in(run);
      FAIL() << "it went on";
    } catch (const NumericalError& error) {
      EXPECT_THAT(error.what(), HasSubstr("step 5 is finite, but its update is not: "));
      EXPECT_THAT(error.what(), HasSubstr(" in optimizer (optim/update_rules.cpp:"));
      EXPECT_THAT(error.what(), HasSubstr("made an infinity first"));
      EXPECT_THAT(error.what(), HasSubstr("The last good state is"));
    }
    // Nothing that is not finite was saved, and the step is kept as it began.
    EXPECT_EQ(open_checkpoint(folder_ / (run + "/checkpoints/last")).record.step, 0);
    const LoadedStep bad = load_bad_step(folder_ / (run + "/bad_steps/step-00000005"));
    EXPECT_TRUE(std::isfinite(bad.step.results.at("loss")));
    const int idle = bad.step.graph.find_input("idle");
    EXPECT_NEAR(bad.inputs[static_cast<size_t>(idle)].at(0), 1e36, 1e33);
  }
}

TEST_F(TrainerTest, ABadStepKeepsWhetherMatmulsWereOfTf32) {
  job_.training = std::make_shared<Spoiled>(24, 24, INFINITY);
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const std::string path = "run/bad_steps/step-00000025/";
  EXPECT_FALSE(load_bad_step(folder_ / path).step.compile.tf32);
  nlohmann::json report = nlohmann::json::parse(file(path + "report.json"));
  EXPECT_EQ(report.at("tf32"), false);
  Manifest manifest = open_checkpoint_folder(folder_ / path).take_or_throw().manifest();
  const auto loaded_of_report = [&] {
    const std::string text = report.dump();
    manifest.at("report.json") = {text.size(), hash_text(text)};
    folder_.put(path + "report.json", text);
    folder_.put(path + kManifestName, encode_manifest(manifest));
    return load_bad_step(folder_ / path).step.compile.tf32;
  };
  report["tf32"] = true;
  EXPECT_TRUE(loaded_of_report());
  report.erase("tf32");  // an earlier version's
  EXPECT_FALSE(loaded_of_report());
}

TEST_F(TrainerTest, ADamagedBadStepIsNamed) {
  job_.training = std::make_shared<Spoiled>(24, 24, INFINITY);
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  const std::string path = "run/bad_steps/step-00000025/";
  for (const char* name : {"report.json", "graph.txt", "batch.safetensors"}) {
    const std::string whole = file(path + name);
    folder_.put(path + name, whole.substr(0, whole.size() / 2));
    try {
      load_bad_step(folder_ / path);
      ADD_FAILURE() << name << " was read";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
    folder_.put(path + name, whole);
  }
}

TEST_F(TrainerTest, ALossMustBeAScalar) {
  job_.loss = [](Trace& trace, std::span<const Tensor> batch) {
    squared_error(trace, batch);
    return batch[1];
  };
  try {
    train_in("run");
    FAIL() << "it ran";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("must be a floating scalar, this is f32[8]"));
  }
}

TEST_F(TrainerTest, AWriteThatFailsEndsTheRunWithAReason) {
  const RunDirectory run = RunDirectory::create(folder_ / "run");
  fs::remove_all(folder_ /
                 "run/checkpoints");  // a file in the folder's place: root may do anything
  folder_.put("run/checkpoints", "");
  EXPECT_THROW(train(job_, run, console_, false, std::chrono::steady_clock::now()), DataError);
  EXPECT_EQ(nlohmann::json::parse(file("run/summary.json"))["status"], "failed");
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their heaps keep what is freed
/// Looks at the process's memory as batches are asked for, early and late in a long run.
class Watched : public Lines {
 public:
  static constexpr uint64_t kEarly = 2000;
  static constexpr uint64_t kLate = kEarly + 10000;
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    Lines::fill(position, buffers);
    if (position == kEarly) early_ = resident_bytes();
    if (position == kLate) late_ = resident_bytes();
  }
  bool has_looked() const { return early_ > 0 && late_ > 0; }
  int64_t growth() const { return late_ - early_; }

 private:
  mutable std::atomic<int64_t> early_ = 0;
  mutable std::atomic<int64_t> late_ = 0;
};

// Metrics, evaluations and saves included.
TEST_F(TrainerTest, TenThousandStepsTakeNoMoreMemory) {
  const auto watched = std::make_shared<Watched>();
  job_.training = watched;
  job_.options.steps = Watched::kLate + 100;
  job_.options.evaluation_interval = job_.options.checkpoint_interval = 1000;
  ASSERT_EQ(train_in("run"), ExitCode::kOk);
  ASSERT_TRUE(watched->has_looked());
  EXPECT_LE(watched->growth(), 1 << 20);
}
#endif

}  // namespace
}  // namespace fullbore
