#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

#include "tests/support/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

/// A sample of `tools/campaign damaged_text`: nothing that is damaged of a run's texts goes unsaid.
class DamagedText : public JobTest {
 protected:
  std::string changed(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = read(file);
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << file << " has no " << from;
    return text.replace(at, from.size(), to);
  }
  std::string cut_at_line(const std::string& file, const std::string& line) {
    const std::string text = read(file);
    return text.substr(0, text.find(line));
  }
  /// As a crash behind the checkpoint of step 10 leaves the run, which has steps up to 20.
  void go_back(const std::string& run) {
    for (const char* newer : {"step-00000015", "step-00000020"})
      fs::remove_all(folder_ / (run + "/checkpoints/" + newer));
    for (const char* link : {"last", "best"}) {
      fs::remove(folder_ / (run + "/checkpoints/" + link));
      fs::create_symlink("step-00000010", folder_ / (run + "/checkpoints/" + link));
    }
  }
  static std::string all(const CommandResult& result) { return result.out + result.err; }
};

TEST_F(DamagedText, ACutConfigurationIsRefusedWithWhatDiffersAndTheWayOut) {
  ASSERT_EQ(train({"run.dir=run", "train.keep_checkpoints=0"}).exit_code, 0);
  const double loss = summary("run")["final_train_loss"];
  go_back("run");
  folder_.put("run/config.resolved.yaml", cut_at_line("run/config.resolved.yaml", "  steps: 20"));
  const auto before = folder_contents(folder_.path());
  const CommandResult refused = command({"train", "run", "--resume"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("run/config.resolved.yaml: it is damaged"));
  EXPECT_THAT(refused.err, HasSubstr("train.steps is "));
  EXPECT_THAT(refused.err, HasSubstr(", not 20"));
  const std::string way = "train run/checkpoints/last/config.json run.dir=run --resume";
  EXPECT_THAT(refused.err, HasSubstr("fullbore " + way));
  EXPECT_EQ(folder_contents(folder_.path()), before) << "nothing is lost";
  // The way out that it names is one.
  const CommandResult resumed =
      command({"train", "run/checkpoints/last/config.json", "run.dir=run", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(all(resumed), HasSubstr("config.resolved.yaml is damaged"));
  EXPECT_EQ(summary("run")["steps"], 20);
  EXPECT_EQ(summary("run")["final_train_loss"], loss);
  EXPECT_THAT(all(command({"train", "run", "--resume"})), Not(HasSubstr("damaged")))
      << "it has been written anew";
}

TEST_F(DamagedText, SettingsThatLostTheirChecksumAloneAreTakenAndTold) {
  ASSERT_EQ(train({"run.dir=run", "train.keep_checkpoints=0"}).exit_code, 0);
  go_back("run");
  const std::string whole = read("run/config.resolved.yaml");
  folder_.put("run/config.resolved.yaml", whole.substr(0, whole.rfind("# xxhash64")));
  const CommandResult resumed = command({"train", "run", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(all(resumed),
              HasSubstr("run/config.resolved.yaml is damaged; its settings are those of"));
  // Of an older version: no checksum at all.
  go_back("run");
  const size_t first = whole.find('\n') + 1;
  folder_.put("run/config.resolved.yaml", whole.substr(first, whole.rfind("# xxhash64") - first));
  const CommandResult older = command({"train", "run", "--resume"});
  ASSERT_EQ(older.exit_code, 0) << older.err;
  EXPECT_THAT(all(older), HasSubstr("run/config.resolved.yaml has no checksum; its settings are"));
}

TEST_F(DamagedText, LinesOfMetricsAreToldAndTheOthersPrinted) {
  ASSERT_EQ(train({"run.dir=run"}).exit_code, 0);
  const CommandResult sound = command({"metrics", "run"});
  ASSERT_EQ(sound.exit_code, 0) << sound.err;
  EXPECT_EQ(sound.err, "");
  EXPECT_THAT(sound.out, Not(HasSubstr("xxhash64")));
  const std::string whole = read("run/metrics.jsonl");
  const auto lines = std::count(whole.begin(), whole.end(), '\n');

  folder_.put("run/metrics.jsonl", changed("run/metrics.jsonl", "\"step\":4,", "\"step\":3,"));
  CommandResult result = command({"metrics", "run"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("run/metrics.jsonl:3: its checksum is not"));
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), lines - 1);

  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  folder_.put("run/metrics.jsonl", whole.substr(0, last));
  result = command({"metrics", "run"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err,
              HasSubstr(fmt::format("it is cut off: {} of {} lines", lines - 1, lines)));
  EXPECT_THAT(all(command({"train", "run", "--resume"})),
              HasSubstr("run/metrics.jsonl: it is cut off"));

  folder_.put("run/metrics.jsonl", whole.substr(whole.find('\n') + 1));
  EXPECT_THAT(command({"metrics", "run"}).err, HasSubstr(":1: a line is missing before it"));
}

TEST_F(DamagedText, AResumedRunKeepsSoundMetricsAndACopyOfTheDamagedFile) {
  ASSERT_EQ(train({"run.dir=run", "train.keep_checkpoints=0"}).exit_code, 0);
  const auto before = without_times(metrics("run"));
  go_back("run");
  const std::string damaged = changed("run/metrics.jsonl", "\"step\":4,", "\"step\":5,");
  folder_.put("run/metrics.jsonl", damaged);
  const CommandResult resumed = command({"train", "run", "--resume"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(all(resumed), HasSubstr("run/metrics.jsonl:3: its checksum is not"));
  EXPECT_THAT(all(resumed), HasSubstr("lines that were written are there"));
  EXPECT_EQ(read("run/metrics.jsonl.damaged-1"), damaged);
  EXPECT_EQ(command({"metrics", "run"}).exit_code, 0) << "it is whole again";
  EXPECT_EQ(metrics("run").size(), before.size() - 1) << "all but the damaged line";
}

TEST_F(DamagedText, OfSummaryAndLogIsTold) {
  ASSERT_EQ(train({"run.dir=run"}).exit_code, 0);
  const std::string log = read("run/log.txt");
  folder_.put("run/log.txt", log.substr(0, log.size() - 10));
  EXPECT_THAT(all(command({"train", "run", "--resume"})), HasSubstr("run/log.txt: it was changed"));
  folder_.put("run/log.txt", log);
  folder_.put("run/summary.json", changed("run/summary.json", "\"steps\": 20", "\"steps\": 21"));
  const CommandResult record = command({"record", "run"});
  EXPECT_EQ(record.exit_code, 3);
  EXPECT_THAT(record.err, HasSubstr("run/summary.json: it is damaged"));
  EXPECT_THAT(all(command({"train", "run", "--resume"})),
              HasSubstr("run/summary.json: it is damaged"));
  EXPECT_EQ(summary("run")["steps"], 20) << "it is written anew";
  EXPECT_EQ(command({"train", "run", "--resume"}).exit_code, 0);
  EXPECT_THAT(all(command({"train", "run", "--resume"})), Not(HasSubstr("damaged")));
}

TEST_F(DamagedText, OfACheckpointIsRefused) {
  ASSERT_EQ(train({"run.dir=run"}).exit_code, 0);
  for (const char* name : {"manifest.json", "config.json", "position.json", "tokenizer.json"}) {
    const std::string file = std::string("run/checkpoints/last/") + name;
    const std::string whole = read(file);
    std::string other = whole;
    other[other.size() / 2] ^= 1;
    for (const std::string& damaged : {whole.substr(0, whole.size() / 2), other}) {
      folder_.put(file, damaged);
      const CommandResult result = command({"eval", "run/checkpoints/last"});
      EXPECT_EQ(result.exit_code, 3) << result.out;
      EXPECT_THAT(result.err, HasSubstr(name));
    }
    folder_.put(file, whole);
  }
}

}  // namespace
}  // namespace fullbore
