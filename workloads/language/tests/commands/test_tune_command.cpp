// `fullbore lab tune` as a whole: measured by processes at a lowered level, stopped and gone on with, kept, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/base/processor.h"
#include "tests/support/command_run.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A job whose steps take a fraction of a millisecond.
void put_job(const testing::ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "some words that a model may learn " + std::to_string(i);
  folder.put("text.txt", text);
  folder.put("job.yaml", R"(
data: {path: text.txt, validation_fraction: 0.1, cache_dir: data}
model: {name: gpt, layers: 1, heads: 1, width: 16, context: 16}
train: {steps: 60, batch_size: 2, eval_batches: 2}
engine: {threads: 1}
)");
}

std::string lowest_level() { return std::string(processor_level_name(processor_levels().front())); }

std::vector<std::string> tuning(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"lab",      "tune",
                                    "job.yaml", "engine.processor=" + lowest_level(),
                                    "--switch", "engine.precision=bf16",
                                    "--switch", "fuse",
                                    "--switch", "engine.accumulate=4",
                                    "--steps",  "30",
                                    "--out",    "out"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Nothing is said of how long anything takes: what is taken is what its own intervals, at that level, say.
TEST(TuneCommand, StoppedGoesOnTakesWhatIsFasterBeyondItsIntervalAndKeepsIt) {
  const testing::ScratchFolder folder;
  put_job(folder);
  const std::string first = folder / "out/heats/0000.json";
  bool stopped = false;
  const CommandResult interrupted =
      run_command(folder.path(), tuning({"--again"}), [&](pid_t process) {
        if (!stopped && fs::exists(first)) ::kill(process, SIGINT);
        stopped = fs::exists(first);
      });
  ASSERT_EQ(interrupted.exit_code, 75) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("--resume"));
  EXPECT_THAT(interrupted.err, ::testing::Not(HasSubstr("--again")));
  const fs::file_time_type made = fs::last_write_time(first);
  EXPECT_THAT(run_command(folder.path(), tuning({})).err,
              HasSubstr("holds a tuning already; --resume goes on with it"));
  EXPECT_THAT(run_command(folder.path(), tuning({"--resume", "--quality", "any"})).err,
              HasSubstr("another configuration, other choices"));

  const CommandResult done = run_command(folder.path(), tuning({"--resume", "--json"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(fs::last_write_time(first), made);
  const nlohmann::json report = parse_json(done.out).value();
  EXPECT_THAT(report["machine"].get<std::string>(), HasSubstr(lowest_level()));
  ASSERT_EQ(report["candidates"].size(), 3U);
  for (const nlohmann::json& each : report["candidates"]) {
    if (each["name"] == "engine.accumulate=4") {
      EXPECT_EQ(each["verdict"], "refused");  // a batch of two has no four parts
      EXPECT_THAT(each["reason"].get<std::string>(), HasSubstr("exit code 2"));
      continue;
    }
    EXPECT_GT(each["step_seconds"], 0.0);
    EXPECT_GT(each["predicted_step_seconds"], 0.0);
    EXPECT_GT(each["resident_bytes"], 1 << 20);
    if (each["speed_high"] < 1) {
      EXPECT_EQ(each["verdict"], "declined: slower") << each;
    }
    if (each["verdict"] == "taken") {
      EXPECT_GT(each["speed_low"], 1.0);
    }
  }
  for (const nlohmann::json& trial : report["confirmation"]) {
    if (trial["reason"].get<std::string>().empty()) {
      EXPECT_GT(trial["speed_low"], 1.0);
    }
  }
  EXPECT_FALSE(fs::exists(folder / "out/work"));
  EXPECT_EQ(run_command(folder.path(), {"train", "out/tuned.yaml", "train.steps=1"}).exit_code, 0);

  // Asked again it measures nothing, whatever folder it is to write in.
  std::vector<std::string> again = tuning({});
  again.back() = "elsewhere";
  const CommandResult kept = run_command(folder.path(), again);
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_THAT(kept.out, HasSubstr("--again measures anew"));
  EXPECT_EQ(parse_json(read_file(folder / "elsewhere/report.json").value()).value(), report);
  EXPECT_TRUE(fs::exists(folder / "elsewhere/tuned.yaml"));
  EXPECT_FALSE(fs::exists(folder / "elsewhere/heats"));
}

TEST(TuneCommand, RefusesWhatCannotBeTuned) {
  const testing::ScratchFolder folder;
  put_job(folder);
  const auto refusal = [&](const std::vector<std::string>& more, int code = 2) {
    const CommandResult result = run_command(folder.path(), tuning(more));
    EXPECT_EQ(result.exit_code, code) << result.err;
    return result.err;
  };
  EXPECT_THAT(refusal({"--switch", "fuze"}), HasSubstr("Did you mean 'fuse'?"));
  EXPECT_THAT(refusal({"--batch-sizes", "-2"}), HasSubstr("train.batch_size"));
  EXPECT_THAT(refusal({"--batch-sizes", ""}), HasSubstr("--batch-sizes is empty"));
  EXPECT_THAT(refusal({"--resume"}), HasSubstr("holds no tuning"));
  EXPECT_FALSE(fs::exists(folder / "out"));
  EXPECT_THAT(refusal({"--memory", "1MB"}, 5), HasSubstr("does not fit"));
}

}  // namespace
}  // namespace fullbore
