#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/apps/job.h"

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
    ::testing::Values(
        Refusal{"missing", {"data.path=none.txt"}, 3, "none.txt: No such file"},
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
        Refusal{"batching", {"data.batching=pack"}, 2, "one of windows, packed, buckets, tracks"},
        Refusal{"buckets", {"data.buckets=[8]"}, 2, "data.batching windows"},
        Refusal{"no_setting", {"more"}, 2, "more"},
        Refusal{"unknown_option", {"--resum"}, 2, "Did you mean '--resume'?"},
        Refusal{"unknown_pass", {"engine.disabled_passes=[simplfy]"}, 2, "simplify"},
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
      train({"run.dir=run", "optim.learning_rate=1e30", "optim.warmup_steps=10000000",
             "optim.clip_norm=0", "train.steps=2000", "train.checkpoint_interval=1"});
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
  EXPECT_THAT(replayed.out, HasSubstr("backend and interpreter agree on every node"));
  EXPECT_EQ(command({"replay-step", "run"}).exit_code, 3);
}

}  // namespace
}  // namespace fullbore
