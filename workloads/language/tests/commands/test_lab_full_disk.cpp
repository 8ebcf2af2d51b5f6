// A disk that is full in the middle of an experiment ends it with what was finished kept, and is no result of a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "tests/support/command_run.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Weights of 64 numbers a row are larger than a file may be here; what experiments keep of a run is smaller.
constexpr CommandStreams kSmallDisk{.most_file_bytes = 64 << 10};

class LabFullDisk : public ::testing::Test {
 protected:
  LabFullDisk() {
    std::string text;
    for (int i = 0; i < 600; ++i) text += "some words that a model may learn " + std::to_string(i);
    folder_.put("text.txt", text);
    folder_.put("job.yaml", R"(
data: {path: text.txt, validation_fraction: 0.1, cache_dir: data}
model: {name: gpt, layers: 1, heads: 1, width: 64, context: 16}
train: {steps: 2, batch_size: 2, eval_batches: 2}
engine: {threads: 1}
)");
  }
  CommandResult on_small_disk(const std::vector<std::string>& words) const {
    return run_command_with(kSmallDisk, folder_.path(), words);
  }
  nlohmann::json json(const std::string& file) const {
    return parse_json(read_file(folder_ / file).value()).value();
  }

  const testing::ScratchFolder folder_;
};

TEST_F(LabFullDisk, OfAGateIsNoVerdict) {
  std::vector<std::string> words = {"lab",     "gate", "job.yaml", "--with", "engine.accumulate=2",
                                    "--pilot", "2",    "--seeds",  "2",      "--out",
                                    "gate"};
  const CommandResult full = on_small_disk(words);
  EXPECT_EQ(full.exit_code, 3) << full.out;
  EXPECT_THAT(full.err, HasSubstr("for want of disk space"));
  EXPECT_THAT(full.err, HasSubstr("--resume goes on"));
  EXPECT_FALSE(fs::exists(folder_ / "gate/gate.json"));
  words.emplace_back("--resume");
  run_command(folder_.path(), words);
  EXPECT_EQ(json("gate/gate.json")["seeds"].size(), 2U);
}

TEST_F(LabFullDisk, OfASweepIsNoFailedTrial) {
  folder_.put("space.yaml",
              "sweep: {config: job.yaml, method: grid}\n"
              "optim: {learning_rate: [0.001, 0.002]}\n");
  std::vector<std::string> words = {"lab", "sweep", "space.yaml", "--out", "sweep"};
  const CommandResult full = on_small_disk(words);
  EXPECT_EQ(full.exit_code, 3) << full.out;
  EXPECT_THAT(full.err, HasSubstr("for want of disk space"));
  EXPECT_TRUE(fs::is_empty(folder_ / "sweep/trials")) << "a trial is kept as failed";
  words.emplace_back("--resume");
  const CommandResult whole = run_command(folder_.path(), words);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
}

// What no run of A can be made of says so at once, and not of each seed.
TEST_F(LabFullDisk, ABaselineThatCannotBeRunEndsAGate) {
  const CommandResult result =
      run_command(folder_.path(), {"lab", "gate", "job.yaml", "data.path=nothere.txt", "--with",
                                   "engine.accumulate=2", "--out", "gate"});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr("lab gate: job.yaml cannot be run: exit code 3"));
  EXPECT_THAT(result.err, HasSubstr("nothere.txt"));
  EXPECT_FALSE(fs::exists(folder_ / "gate/a-2"));
}

}  // namespace
}  // namespace fullbore
