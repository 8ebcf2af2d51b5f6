#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Refusal {
  std::string name;
  std::vector<std::string> arguments;  ///< after "train job.yaml data.path=text.txt"
  int exit_code;
  std::string message;  ///< a part of it
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class BadInput : public JobTest, public ::testing::WithParamInterface<Refusal> {};

// One clear line, the documented exit code, and nothing made or changed.
TEST_P(BadInput, IsOneLineAndLeavesNothing) {
  folder_.put("empty.txt", "");
  folder_.put("latin1.txt", "caf\xe9 au lait, and so on\n");
  folder_.put("short.txt", "abc");
  const auto before = folder_contents(folder_.path());
  const CommandResult result = train(GetParam().arguments);
  EXPECT_EQ(result.exit_code, GetParam().exit_code);
  EXPECT_THAT(result.err, StartsWith("fullbore: "));
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(folder_contents(folder_.path()), before);
}

INSTANTIATE_TEST_SUITE_P(
    Train, BadInput,
    ::testing::Values(Refusal{"missing", {"data.path=none.txt"}, 3, "none.txt: No such file"},
                      Refusal{"folder", {"data.path=."}, 3, "latin1.txt: not UTF-8 text"},
                      Refusal{"empty", {"data.path=empty.txt"}, 3, "empty.txt"},
                      Refusal{"not_utf8", {"data.path=latin1.txt"}, 3, "latin1.txt"},
                      Refusal{"short_text", {"data.path=short.txt"}, 3, "short.txt"},
                      Refusal{"no_text", {"data.path="}, 2, "data.path=FILE"},
                      Refusal{"wrong_type", {"train.steps=many"}, 2, "train.steps"},
                      Refusal{"negative", {"model.width=-16"}, 2, "model.width"},
                      Refusal{"unknown_key", {"train.stepz=5"}, 2, "Did you mean 'train.steps'?"},
                      Refusal{"unknown_section", {"trian.steps=5"}, 2, "train"},
                      Refusal{"heads", {"model.heads=3"}, 2, "model.heads"},
                      Refusal{"batching",
                              {"data.batching=pack"},
                              2,
                              "one of windows, packed, buckets, sequences"},
                      Refusal{"buckets", {"data.buckets=[8]"}, 2, "data.batching windows"},
                      Refusal{"no_setting", {"more"}, 2, "more"},
                      Refusal{"unknown_option", {"--resum"}, 2, "Did you mean '--resume'?"},
                      Refusal{"unknown_pass",
                              {"engine.disabled_passes=[algebraic_simplificaton]"},
                              2,
                              "algebraic_simplification"},
                      Refusal{"unwritable", {"run.dir=/proc/none/run"}, 3, "/proc/none"}),
    [](const auto& refusal) { return refusal.param.name; });

TEST_F(JobTest, BadConfigurationFilesAreNamedWithTheirLine) {
  folder_.put("bad.yaml", "train:\n  steps: 5\n  batchsize: 4\n");
  const CommandResult result = command({"train", "bad.yaml", "data.path=text.txt"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("bad.yaml:3: unknown key 'train.batchsize'"));
  EXPECT_EQ(command({"train", "none.yaml"}).exit_code, 2);
  EXPECT_THAT(command({"train", "data.path=text.txt"}).err,
              HasSubstr("the first argument is a configuration file"));
}

/// Every file that a user may have from a stranger, made to crash its reader or to fill its memory.
TEST_F(JobTest, HostileFilesAreRefusedForWhatTheyAre) {
  const std::string nested = std::string(80'000, '[') + std::string(80'000, ']');
  const std::string deep = "nested deeper than 64";
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 3) << arguments[0] << result.out;
    EXPECT_THAT(result.err, HasSubstr(message)) << arguments[0];
    EXPECT_LT(result.err.size(), 1000U);
  };
  const std::vector<std::string> gpt2 = {"train", "job.yaml", "data.path=text.txt",
                                         "model.initialize_from=gpt2"};
  fs::create_directories(folder_ / "gpt2");
  folder_.put("gpt2/config.json", "{\"model_type\": " + nested + "}");
  refused(gpt2, "config.json: line 1, byte 78: lists and objects are " + deep);
  folder_.put("gpt2/config.json",
              R"({"model_type": "gpt2", "vocab_size": 65, "n_layer": 1000000000})");
  refused(gpt2, "'n_layer' is 1000000000; a whole number from 1 to 1000 was expected");
  fs::remove(folder_ / "gpt2/config.json");
  fs::create_symlink("/dev/zero", folder_ / "gpt2/config.json");
  refused(gpt2, "gpt2/config.json is not a regular file");

  folder_.put("deep.jsonl", nested + "\n");
  refused({"metrics", "deep.jsonl"}, deep);
  folder_.put("deep.json", nested);
  refused({"record", "deep.json"}, deep);
  fs::create_symlink("/dev/zero", folder_ / "zero");
  refused({"metrics", "zero"}, "zero is not a regular file");
  refused({"record", "zero"}, "zero is not a regular file");
  folder_.put("deep.yaml", nested);
  EXPECT_EQ(command({"train", "deep.yaml"}).exit_code, 2);
}

TEST_F(JobTest, SizesThatNoMemoryHoldsAreRefusedAtOnce) {
  const auto refused = [&](const std::vector<std::string>& settings, const std::string& message) {
    const CommandResult result = train(settings);
    EXPECT_EQ(result.exit_code, 5) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_FALSE(fs::exists(folder_ / "runs"));
  };
  refused({"model.layers=1000", "model.width=65536"}, "model.layers=1000, model.width=65536");
  refused({"model.vocabulary=1000000000", "model.width=1024"}, "model.vocabulary=1000000000");
  refused({"train.batch_size=1048576", "model.context=1048576"}, "train.batch_size=1048576");
  refused({"data.prefetch=1024", "train.batch_size=65536", "model.context=4096"},
          "for batches that are kept ready");
}

TEST_F(JobTest, CheckpointsOfOtherModelsAreRefusedAndTheRunIsIntact) {
  ASSERT_EQ(train({"run.dir=run"}).exit_code, 0);
  folder_.put("other.txt", read("text.txt") + "quite another ending.\n");
  std::string swapped = read("text.txt");
  std::swap(swapped[0], swapped[1]);
  folder_.put("swapped.txt", swapped);
  const auto before = folder_contents(folder_.path());
  const auto refused = [&](const std::string& setting, int code, const std::string& message) {
    const CommandResult result = train({"run.dir=run", "train.steps=40", setting, "--resume"});
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(folder_contents(folder_.path()), before) << setting;
  };
  refused("model.width=32", 3, "is f32[");  // the first tensor that differs, with both shapes
  refused("model.layers=2", 3, "layers.1.");
  refused("model.heads=1", 3, "the run's model was 'gpt layers=1 heads=2");
  refused("run.seed=8", 2, "run.seed=7, not 8");
  refused("train.steps=10", 2, "past train.steps = 10");
  refused("data.path=other.txt", 3, "another model");  // a larger vocabulary: other tables
  refused("data.path=swapped.txt", 3, "the run's data was");
}

TEST_F(JobTest, EveryDamagedCheckpointIsNamedAndNothingIsLost) {
  ASSERT_EQ(train({"run.dir=run"}).exit_code, 0);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "run/checkpoints"))
    if (!entry.is_symlink())
      folder_.put("run/checkpoints/" + entry.path().filename().string() + "/manifest.json", "torn");
  const auto before = folder_contents(folder_.path());
  const CommandResult resumed = train({"run.dir=run", "train.steps=40", "--resume"});
  EXPECT_EQ(resumed.exit_code, 3);
  EXPECT_THAT(resumed.err, HasSubstr("no checkpoint of run is sound"));
  for (const char* name : {"generate", "eval"}) {
    const CommandResult result = command({name, "run"});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("run/checkpoints/best/manifest.json"));
  }
  EXPECT_EQ(folder_contents(folder_.path()), before);
}

TEST_F(JobTest, DivergenceStopsTheRunAndKeepsTheLastCheckpoint) {
  const CommandResult result =
      train({"run.dir=run", "optim.learning_rate=1e15", "optim.warmup_steps=10000000",
             "optim.groups=[{match: *, learning_rate_multiplier: 1e15}]", "optim.clip_norm=0",
             "train.steps=2000", "train.checkpoint_interval=1"});
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("is not finite: loss"));
  EXPECT_THAT(result.err, HasSubstr("Try a lower optim.learning_rate"));
  const nlohmann::json json = summary("run");
  EXPECT_EQ(json["status"], "failed");
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("is not finite"));
  EXPECT_EQ(command({"eval", "run/checkpoints/last"}).exit_code, 0)
      << "the checkpoint holds numbers that are not finite";

  const std::string bad = fs::directory_iterator(folder_ / "run/bad_steps")->path().string();
  const CommandResult replayed = command({"replay-step", bad});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
  EXPECT_THAT(replayed.out, HasSubstr("\norigin     "));
  EXPECT_THAT(replayed.out, HasSubstr("device and interpreter agree on every node"));
  EXPECT_EQ(command({"replay-step", "run"}).exit_code, 3);
}

}  // namespace
}  // namespace fullbore
