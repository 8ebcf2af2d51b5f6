// `fullbore lab ablate` as a whole: runs by turns in processes of their own, stopped and gone on with, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "tests/support/command_run.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A job whose steps take a fraction of a millisecond.
std::string put_job(const testing::ScratchFolder& folder) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "some words that a model may learn " + std::to_string(i);
  folder.put("text.txt", text);
  return folder.put("job.yaml", R"(
data: {path: text.txt, validation_fraction: 0.1, cache_dir: data}
model: {name: gpt, layers: 1, heads: 1, width: 16, context: 16}
train: {steps: 60, batch_size: 2, eval_batches: 2}
engine: {threads: 1}
)");
}

std::vector<std::string> ablation(std::vector<std::string> more) {
  std::vector<std::string> words = {
      "lab",     "ablate", "job.yaml", "--switch", "fuse", "--switch", "engine.accumulate=4",
      "--steps", "48",     "--out",    "out"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.insert(fs::relative(entry.path(), folder).string());
  return names;
}

// Whatever it finds: the claim is measured again, twice over, and the folder of the first time makes room.
TEST(AblateCommand, ConfirmsWhatItClaims) {
  const testing::ScratchFolder folder;
  put_job(folder);
  const std::vector<std::string> words = {"lab",  "ablate",  "job.yaml", "--switch",
                                          "fuse", "--steps", "48",       "--seeds",
                                          "4",    "--out",   "out"};
  ASSERT_EQ(run_command(folder.path(), words).exit_code, 0);
  const bool claims =
      read_file(folder / "out/recommended.yaml").value().find("# Claim:") != std::string::npos;
  std::vector<std::string> again = words;
  again.emplace_back("--confirm");
  for (int time = 0; time < 2; ++time) {
    const CommandResult result = run_command(folder.path(), again);
    if (claims) {
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 4) << result.err;
      EXPECT_THAT(result.out, HasSubstr("claimed"));
    } else {
      EXPECT_EQ(result.exit_code, 2) << result.out;
    }
  }
}

TEST(AblateCommand, StoppedGoesOnWithWhatItHasAndReportsARefusedArmToo) {
  const testing::ScratchFolder folder;
  put_job(folder);
  // Stopped when the first seed is kept: nothing of it is made again.
  const std::string first = folder / "out/runs/seed-0/group-0-2.json";
  bool stopped = false;
  const CommandResult interrupted =
      run_command(folder.path(), ablation({"--seeds", "2"}), [&](pid_t process) {
        if (!stopped && fs::exists(first)) ::kill(process, SIGINT);
        stopped = fs::exists(first);
      });
  ASSERT_EQ(interrupted.exit_code, 75) << interrupted.err;
  EXPECT_THAT(interrupted.err, HasSubstr("--resume"));
  const fs::file_time_type kept = fs::last_write_time(first);
  EXPECT_FALSE(fs::exists(folder / "out/report.json"));

  EXPECT_THAT(run_command(folder.path(), ablation({"--seeds", "2"})).err,
              HasSubstr("holds an ablation already; --resume goes on with it"));
  EXPECT_THAT(run_command(folder.path(), ablation({"--seeds", "5", "--resume"})).err,
              HasSubstr("another configuration, other switches, seeds or steps"));

  const CommandResult done =
      run_command(folder.path(), ablation({"--seeds", "2", "--resume", "--json"}));
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(fs::last_write_time(first), kept);
  const nlohmann::json report = parse_json(done.out).value();
  EXPECT_EQ(report["seeds"], 2);
  std::map<std::string, nlohmann::json> arms;
  for (const nlohmann::json& arm : report["arms"]) arms[arm["name"]] = arm;
  // A batch of two sequences has no four parts: a row with its reason, and the others are measured without it.
  EXPECT_THAT(arms["+engine.accumulate=4"]["reason"].get<std::string>(), HasSubstr("exit code 2"));
  EXPECT_THAT(report["alone"][0].get<std::string>(), HasSubstr("engine.accumulate=4"));
  EXPECT_EQ(report["arms"][1]["on"], nlohmann::json({"fuse"}));
  EXPECT_GT(report["arms"][1]["step_seconds"], 0.0);
  EXPECT_GT(report["arms"][1]["resident_bytes"], 1 << 20);
  // Tokens of a step are counted: two rows of 16.
  for (const nlohmann::json& arm : {report["arms"][0], report["arms"][1]})
    EXPECT_NEAR(arm["throughput"].get<double>() * arm["step_seconds"].get<double>(), 32, 1e-6);
  EXPECT_GT(report["arms"][0]["metrics"][0]["at_equal_steps"], 0.0);
  EXPECT_TRUE(report["control_log_time"]["p"].is_number());
  const std::set<std::string> files = files_in(folder / "out");
  for (const char* name :
       {"report.json", "report.md", "report.html", "recommended.yaml", "plan.json"})
    EXPECT_TRUE(files.contains(name)) << name;
  // The runs themselves are gone, but for what was measured of them.
  EXPECT_FALSE(fs::exists(folder / "out/work"));
  EXPECT_THAT(read_file(folder / "out/report.html").value(), ::testing::Not(HasSubstr("<script")));
  EXPECT_EQ(
      run_command(folder.path(), {"train", "out/recommended.yaml", "train.steps=1"}).exit_code, 0);
}

// Held up for longer than --minutes allows, as by a neighbour: two seeds are enough for a report, and it says what it lacks.
TEST(AblateCommand, WhoseTimeIsOverLeavesOutLaterSeedsAndSaysSo) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kSeconds = 90;
#else
  constexpr int kSeconds = 36;  // several times what it takes
#endif
  const testing::ScratchFolder folder;
  put_job(folder);
  const std::string first = folder / "out/runs/seed-0/group-0-2.json";
  bool held = false;
  const CommandResult done = run_command(
      folder.path(),
      ablation({"--seeds", "3", "--minutes", std::to_string(kSeconds / 60.0), "--json"}),
      [&](pid_t process) {
        if (held || !fs::exists(first)) return;
        held = true;
        ::kill(process, SIGSTOP);
        std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
        ::kill(process, SIGCONT);
      });
  ASSERT_EQ(done.exit_code, 0) << done.err;
  ASSERT_TRUE(held);
  const nlohmann::json report = parse_json(done.out).value();
  EXPECT_EQ(report["seeds"], 2);
  EXPECT_EQ(report["cut_seeds"], 1);
  EXPECT_THAT(read_file(folder / "out/report.md").value(),
              HasSubstr("time was over before 1 of 3 seeds; raise --minutes"));
}

TEST(AblateCommand, RefusesWhatCannotBeMeasured) {
  const testing::ScratchFolder folder;
  put_job(folder);
  const auto refusal = [&](const std::vector<std::string>& more) {
    const CommandResult result = run_command(folder.path(), ablation(more));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_FALSE(fs::exists(folder / "out")) << "what is refused leaves nothing";
    return result.err;
  };
  EXPECT_THAT(refusal({"--seeds", "1"}), HasSubstr("2 at least"));
  EXPECT_THAT(refusal({"--switch", "fuze"}), HasSubstr("Did you mean 'fuse'?"));
  EXPECT_THAT(refusal({"--resume"}), HasSubstr("holds no ablation"));
}

}  // namespace
}  // namespace fullbore
