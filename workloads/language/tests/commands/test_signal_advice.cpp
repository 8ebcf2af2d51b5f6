// A run that is asked to leave prints the command to go on with: it is run as it is printed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "fullbore/app/invocation.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Does the process catch the signal?
bool catches(pid_t process, int number) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigCgt:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (number - 1) & 1) != 0;
  return false;
}

class SignalAdvice : public JobTest {
 protected:
  /// Trains and sends SIGTERM once, when `when` says so.
  CommandResult stopped(const std::function<bool(pid_t)>& when,
                        const std::vector<std::string>& more = {}) {
    bool sent = false;
    std::vector<std::string> all = {"run.dir=it's a run", "train.steps=1000",
                                    "train.eval_interval=0", "train.checkpoint_interval=500",
                                    "log.interval=100"};
    all.insert(all.end(), more.begin(), more.end());
    return train(all, [&](pid_t process) {
      if (sent || !when(process)) return;
      sent = true;
      kill(process, SIGTERM);
    });
  }
  /// What stands behind `words` on its line.
  static std::string command_after(const std::string& text, const std::string& words) {
    const size_t begin = text.find(words);
    if (begin == std::string::npos) return "";
    const size_t command = begin + words.size();
    return text.substr(command, text.find('\n', command) - command);
  }
  void expect_completes(const std::string& command) {
    const std::string line = fmt::format("cd '{}' && {} 2>/dev/null", folder_.path(), command);
    ASSERT_EQ(std::system(line.c_str()), 0) << command;
    EXPECT_EQ(summary("it's a run")["status"], "completed");
    EXPECT_EQ(summary("it's a run")["steps"], 1000);
  }
};

TEST_F(SignalAdvice, BeforeTheFirstSaveIsTheCommandThatWasGiven) {
  const CommandResult result = stopped([](pid_t process) { return catches(process, SIGTERM); });
  ASSERT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
  const std::string command =
      command_after(result.err, "before anything was saved; start again with: ");
  EXPECT_THAT(command,
              StartsWith(testing::command_path() + " train job.yaml data.path=text.txt "
                                                   "'run.dir=it'\\''s a run' train.steps=1000"));
  expect_completes(command);
}

TEST_F(SignalAdvice, AfterASaveGoesOnWithTheRun) {
  const CommandResult result =
      stopped([&](pid_t) { return fs::exists(folder_ / "it's a run/checkpoints/last"); });
  ASSERT_EQ(result.exit_code, 75) << result.err;
  EXPECT_TRUE(fs::exists(folder_ / "it's a run/checkpoints/last"));
  const std::string command = command_after(result.err, "go on with: ");
  EXPECT_EQ(command, testing::command_path() + " train 'it'\\''s a run' --resume");
  expect_completes(command);
}

// With an empty cache the first save is over long before the step is compiled.
TEST_F(SignalAdvice, WhileTheStepIsCompiledGoesOnWithTheRun) {
  const std::string shared = std::getenv("FULLBORE_CACHE");
  setenv("FULLBORE_CACHE", (folder_ / "cache").c_str(), 1);
  const CommandResult result =
      stopped([&](pid_t) { return fs::exists(folder_ / "it's a run/checkpoints/last"); });
  setenv("FULLBORE_CACHE", shared.c_str(), 1);
  ASSERT_EQ(result.exit_code, 75) << result.err;
  const std::string command = command_after(result.err, "go on with: ");
  EXPECT_EQ(command, testing::command_path() + " train 'it'\\''s a run' --resume") << result.err;
  expect_completes(command);
}

TEST_F(SignalAdvice, OfARunThatIsResumedKeepsTheSettingsGiven) {
  ASSERT_EQ(train({"run.dir=it's a run", "train.steps=2"}).exit_code, 0);
  const CommandResult result =
      stopped([](pid_t process) { return catches(process, SIGTERM); }, {"--resume"});
  const std::string command = command_after(result.err, "with: ");
  ASSERT_TRUE(result.exit_code == 75 || result.exit_code == 128 + SIGTERM) << result.err;
  EXPECT_THAT(command, HasSubstr("train.steps=1000 "));
  EXPECT_THAT(command, EndsWith(" --resume"));
  expect_completes(command);
}

TEST(ShellCommand, IsReadAsTheWordsItWasMadeOf) {
  const std::vector<std::string> words = {"printf", "%s|",  "plain-1.5", "two words", "it's", "",
                                          "$HOME",  "a;b&", "*",         "\\",        "[x]",  "~"};
  const std::string path = ::testing::TempDir() + fmt::format("shell_command.{}", getpid());
  const std::string line = fmt::format("{} > '{}'", shell_command(words), path);
  ASSERT_EQ(std::system(line.c_str()), 0);
  std::ifstream file(path);
  const std::string read{std::istreambuf_iterator<char>(file), {}};
  fs::remove(path);
  EXPECT_EQ(read, "plain-1.5|two words|it's||$HOME|a;b&|*|\\|[x]|~|");
  EXPECT_EQ(shell_command({"a\033[2J"}), "$'a\\033[2J'") << "a terminal would obey it";
}

}  // namespace
}  // namespace fullbore
