// A run and a kept step of before keys and values were renamed (older_run/README.md): read as if they had today's
// names.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/config.h"
#include "fullbore/train/run_config.h"
#include "tests/support/gathered.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"
#include "workloads/hybrid/hybrid_keys.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OlderRun : public JobTest {
 protected:
  OlderRun() {
    fs::copy(testing::source_folder() + "/workloads/hybrid/tests/commands/older_run",
             folder_.path(),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                 fs::copy_options::overwrite_existing);
  }
  /// The run was made where every workload was, and has keys of each: where one was deleted, it is refused for them.
  void SetUp() override {
    if (testing::absent_workloads().empty()) return;
    try {
      std::vector<std::string> notes;
      (void)load_run_config(folder_ / "run", {}, notes);
    } catch (const UsageError& error) {
      ASSERT_THAT(error.what(), HasSubstr("unknown key"));
      GTEST_SKIP() << error.what();
    }
  }
  std::string resolved(const std::string& run) const { return read(run + "/config.resolved.yaml"); }
  /// Goes on to step 6 by the settings of the run's own.
  void resume(const std::string& run) const {
    const CommandResult result = command({"train", run + "/config.resolved.yaml", "run.dir=" + run,
                                          "data.path=text.txt", "train.steps=6", "--resume"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("at step 6/6"));
  }
  std::string tensors(const std::string& run) const {
    return read(run + "/checkpoints/step-00000006/weights.safetensors") +
           read(run + "/checkpoints/step-00000006/optimizer.safetensors");
  }
};

TEST_F(OlderRun, IsReadUnderTheNamesOfToday) {
  for (const char* retired :
       {"backend: cpu", "shards: 2", "batching: tracks", "split: tracks", "branch: stand_in"})
    ASSERT_THAT(resolved("run"), HasSubstr(retired));
  std::vector<std::string> notes;
  const Config config = load_run_config(folder_ / "run", {}, notes);
  EXPECT_THAT(notes, ::testing::IsEmpty());
  EXPECT_EQ(config.engine.parallel_microbatches, 2);
  EXPECT_EQ(text_keys(config).data.batching, "sequences");
  EXPECT_EQ(text_keys(config).data.split, "sequences");
  EXPECT_EQ(hybrid_keys(config).model.branch, "channel_softmax");
  ASSERT_TRUE(checkpoint_config(folder_ / "run"));
  EXPECT_THAT(differing_settings(*checkpoint_config(folder_ / "run"), config),
              ::testing::IsEmpty());
}

TEST_F(OlderRun, GoesOnWithTheBitsOfOneThatHasTheNamesOfToday) {
  fs::copy(folder_ / "run", folder_ / "renamed",
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  std::vector<std::string> notes;
  const std::string today = config_yaml(load_run_config(folder_ / "run", {}, notes));
  ASSERT_THAT(today, AllOf(HasSubstr("parallel_microbatches: 2"), HasSubstr("batching: sequences"),
                           HasSubstr("branch: channel_softmax")));
  folder_.put("renamed/config.resolved.yaml", seal_yaml(today));
  resume("run");
  resume("renamed");
  EXPECT_TRUE(tensors("run") == tensors("renamed"));
  EXPECT_THAT(resolved("run"),
              AllOf(HasSubstr("device: cpu"), HasSubstr("branch: channel_softmax")))
      << "what is written anew has today's names";

  // Bits do depend on what the old names say: two microbatches are not one.
  fs::remove_all(folder_ / "renamed");
  fs::copy(testing::source_folder() + "/workloads/hybrid/tests/commands/older_run/run",
           folder_ / "renamed", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  std::string whole = today;
  const std::string parallel = "parallel_microbatches: 2";
  whole.replace(whole.find(parallel), parallel.size(), "parallel_microbatches: 1");
  folder_.put("renamed/config.resolved.yaml", seal_yaml(whole));
  resume("renamed");
  EXPECT_FALSE(tensors("run") == tensors("renamed"));
}

TEST_F(OlderRun, IsEvaluatedAndGeneratesFromItsCheckpoint) {
  const CommandResult eval = command({"eval", "run", "--data", "text.txt"});
  EXPECT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_THAT(eval.out, HasSubstr("initial state       zero"));
  const CommandResult generated =
      command({"generate", "run/checkpoints/step-00000003", "--tokens", "5"});
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
}

TEST_F(OlderRun, LosesItsSettingsAndTakesThoseOfItsCheckpoint) {
  folder_.put("run/config.resolved.yaml", resolved("run").substr(0, 200));
  const CommandResult result = command({"train", "run/checkpoints/last/config.json", "run.dir=run",
                                        "data.path=text.txt", "train.steps=6", "--resume"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(OlderRun, KeptAStepThatIsReplayed) {
  ASSERT_THAT(read("bad_steps/step-00000002/report.json"), HasSubstr("\"backend\": \"cpu\""));
  const CommandResult replayed = command({"replay-step", "bad_steps/step-00000002"});
  // 4: in double precision, to which it is compared, the numbers are finite for longer.
  EXPECT_TRUE(replayed.exit_code == 0 || replayed.exit_code == 4) << replayed.err;
  EXPECT_THAT(replayed.out,
              HasSubstr("origin     packed_attention in layers.0.attention (models/"));
  EXPECT_THAT(replayed.out, HasSubstr(":22), microbatch 1 of 2"));
}

TEST_F(OlderRun, IsNoExcuseForOldNamesThatAreTyped) {
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(refused({"train", "run.yaml"}), HasSubstr("is called sequences now"));
  EXPECT_THAT(refused({"train", "job.yaml", "engine.shards=2"}),
              HasSubstr("'engine.shards' is called engine.parallel_microbatches now"));
  EXPECT_THAT(refused({"train", "run/config.resolved.yaml", "run.dir=run", "engine.backend=cpu",
                       "--resume"}),
              HasSubstr("'engine.backend' is called engine.device now"));
}

}  // namespace
}  // namespace fullbore
