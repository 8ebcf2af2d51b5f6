// Every command with a standard output, a standard error or files that cannot be written: those of no workload here.
#include <csignal>
#include <nlohmann/json.hpp>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include "fullbore/base/files.h"

#include <filesystem>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const OutputRows& rows() {
  static const OutputRows all = {
      {"train",
       {{"train", "job.yaml", "data.path=text.txt", "train.steps=2", "run.dir=fresh",
         "train.sample_characters=5"}}},
      {"eval", {{"eval", "runs/tiny-1"}}},
      {"lab gate", {{"lab", "gate", "gated", "gated"}}},
      {"generate", {{"generate", "runs/tiny-1", "--characters", "3"}}},
      {"export", {{"export", "runs/tiny-1", "-o", "exported"}, true, {"exported"}}},
      {"data tokenize",
       {{"data", "tokenize", "text.txt", "--out", "out.tokens"}, true, {"out.tokens"}}},
      {"data inspect", {{"data", "inspect", "text.tokens"}}},
      {"data stats", {{"data", "stats", "text.tokens"}}},
      {"data train-tokenizer",
       {{"data", "train-tokenizer", "text.txt", "--vocabulary", "260", "--out", "out.json"},
        true,
        {"out.json"}}},
      {"lab sweep",
       {{"lab", "sweep", "space.yaml", "--out", "swept", "--resume"}, true, {"swept/report.json"}}},
      {"runs list", {{"runs", "list"}}},
      {"runs show", {{"runs", "show", "runs/tiny-1"}}},
      {"runs show --html",
       {{"runs", "show", "runs/tiny-1", "--html", "run.html"}, false, {"run.html"}}},
      {"runs compare", {{"runs", "compare", "runs/tiny-1", "runs/tiny-1"}}},
      {"runs plot", {{"runs", "plot", "runs/tiny-1"}}},
      {"runs plot --svg",
       {{"runs", "plot", "runs/tiny-1", "--svg", "run.svg"}, false, {"run.svg"}}},
      {"runs remove", {{"runs", "remove", "runs/tiny-1"}}},
      {"metrics", {{"metrics", "runs/tiny-1"}}},
      {"record", {{"record", "runs/tiny-1"}}},
      {"record --output", {{"record", "runs/tiny-1", "-o", "record.json"}, false, {"record.json"}}},
      {"replay-step", {{"replay-step", "bad", "--fast"}}},
      {"lab ablate",
       {{"lab", "ablate", "job.yaml", "data.path=text.txt", "--switch", "fuse", "--steps", "2",
         "--out", "lab", "--resume"},
        true,
        {"lab/report.json"}}},
      {"lab tune",
       {{"lab", "tune", "job.yaml", "data.path=text.txt", "--switch", "fuse", "--steps", "2",
         "--out", "tuned"},
        true,
        {"tuned/report.json"}}},
      {"plan", {{"plan", "job.yaml", "--vocabulary", "65"}}},
      {"bench",
       {{"bench", "job.yaml", "--vocabulary", "65", "--rounds", "3", "--steps", "1", "--warm-up",
         "1", "--json", "steps.json"},
        true,
        {"steps.json"}}},
      {"profile",
       {{"profile", "job.yaml", "--vocabulary", "65", "--wait", "0", "--warm-up", "1", "--active",
         "1", "--repeat", "1", "--json", "profile.json", "--trace", "profile.trace"},
        true,
        {"profile.json", "profile.trace"}}},
      {"diagnose",
       {{"diagnose", "runs/tiny-1", "--json", "diagnosis.json"}, true, {"diagnosis.json"}}},
      {"doctor", {{"doctor"}}},
      {"watch", {{"watch", "runs/tiny-1", "--once"}}},
      {"ops", {{"ops"}}},
      {"passes", {{"passes"}}},
      {"config", {{"config"}}},
      {"completion", {{"completion", "bash"}}},
      {"manual", {{"manual"}}},
      {"--help", {{"--help"}}},
      {"--version", {{"--version"}}},
  };
  return all;
}

class UnwritableOutput : public OutputRowsTest {
 protected:
  UnwritableOutput() : OutputRowsTest(rows()) {}
  /// Runs and files that the rows read.
  void prepare() override {
    ASSERT_EQ(train({"train.steps=2"}).exit_code, 0);
    for (const char* const seed : {"1", "2"})
      ASSERT_EQ(train({"train.steps=2", std::string("run.seed=") + seed,
                       std::string("run.dir=gated/") + seed})
                    .exit_code,
                0);
    ASSERT_EQ(command({"data", "tokenize", "text.txt", "--out", "text.tokens"}).exit_code, 0);
    // Measured once; the row reports it anew.
    folder_.put("space.yaml",
                "sweep:\n  config: job.yaml\n  method: grid\n"
                "  settings: [data.path=text.txt, train.steps=2]\n"
                "optim:\n  learning_rate: [1e-3]\n");
    ASSERT_EQ(command({"lab", "sweep", "space.yaml", "--out", "swept"}).exit_code, 0);
    ASSERT_EQ(command({"lab", "ablate", "job.yaml", "data.path=text.txt", "--switch", "fuse",
                       "--steps", "2", "--out", "lab"})
                  .exit_code,
              0);
    // Kept from here on.
    ASSERT_EQ(command({"lab", "tune", "job.yaml", "data.path=text.txt", "--switch", "fuse",
                       "--steps", "2", "--out", "tuned"})
                  .exit_code,
              0);
    ASSERT_EQ(train({"run.dir=diverges", "optim.learning_rate=1e15", "optim.clip_norm=0",
                     "train.steps=9", "train.max_skipped_steps=1"})
                  .exit_code,
              4);
    fs::rename(fs::directory_iterator(folder_ / "diverges/bad_steps")->path(), folder_ / "bad");
  }
};

TEST(OutputRowsOfAll, KnowEveryCommand) { expect_rows_of_others(rows()); }

TEST_F(UnwritableOutput, OfAFullDeviceIsExitCode3AndNamed) { expect_full_device_named(); }

TEST_F(UnwritableOutput, OfAClosedPipeEndsTheCommandWithoutAWord) {
  expect_closed_pipe_ends_without_a_word();
}

TEST_F(UnwritableOutput, OfAClosedDescriptorIsExitCode3AndNamed) {
  expect_closed_descriptor_named();
}

TEST_F(UnwritableOutput, OfAFullDiskIsExitCode3AndNamesTheFile) { expect_full_disk_named(); }

TEST_F(UnwritableOutput, OfAReaderThatHasReadEnoughEndsALongText) {
  ASSERT_EQ(train({"train.steps=1"}).exit_code, 0);
  // Without an end by the pipe this would take days.
  const CommandResult result =
      run_command_with({.out = Stream::closed_pipe}, folder_.path(),
                       {"generate", "runs/tiny-1", "--characters", "1000000000000"});
  EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
  EXPECT_EQ(result.err, "");
}

TEST_F(UnwritableOutput, DoesNotHideWhyACommandFailed) {
  for (const Stream out : {Stream::full, Stream::closed_pipe, Stream::closed}) {
    const CommandResult result =
        run_command_with({.out = out}, folder_.path(), {"eval", "nowhere"});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr("nowhere"));
    const CommandResult usage = run_command_with({.out = out}, folder_.path(), {"ops", "matmull"});
    EXPECT_EQ(usage.exit_code, 2);
    EXPECT_THAT(usage.err, HasSubstr("Did you mean 'matmul'?"));
  }
}

TEST_F(UnwritableOutput, TrainingGoesOnWithoutItsTerminalAndSaysSoInItsLog) {
  for (const Stream err : {Stream::full, Stream::closed_pipe, Stream::closed}) {
    fs::remove_all(folder_ / "fresh");
    expect_done_without(run_command_with(
        {.err = err}, folder_.path(),
        {"train", "job.yaml", "data.path=text.txt", "train.steps=2", "run.dir=fresh"}));
    EXPECT_THAT(read("fresh/log.txt"), HasSubstr("cannot write standard error: "));
  }
}

TEST_F(UnwritableOutput, OfMessagesAloneChangesNoResult) {
  const CommandResult usual = command({"ops"});
  for (const Stream err : {Stream::full, Stream::closed_pipe, Stream::closed}) {
    const CommandResult result = run_command_with({.err = err}, folder_.path(), {"ops"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, usual.out);
    EXPECT_EQ(run_command_with({.err = err}, folder_.path(), {"ops", "matmull"}).exit_code, 2);
    EXPECT_EQ(run_command_with({.err = err}, folder_.path(), {}).exit_code, 2);
  }
}

TEST(OutputRowsOfAll, NothingButOutputWritesToStandardStreams) {
  std::vector<fs::directory_entry> sources;
  for (const char* room : {"/apps", "/fullbore/app", "/fullbore/text", "/workloads"})
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(testing::source_folder() + room))
      if (entry.path().string().find("/tests/") == std::string::npos &&
          entry.path().string().find("/bench/") == std::string::npos &&
          (entry.path().extension() == ".cpp" || entry.path().extension() == ".h"))
        sources.push_back(entry);
  EXPECT_GT(sources.size(), 50U);
  for (const fs::directory_entry& entry : sources) {
    if (entry.path().filename() == "output.cpp") continue;
    const std::string source = read_file(entry.path().string()).value();
    for (const char* word :
         {"fmt::print(", "std::cout", "std::cerr", "printf(", "fputs(", "fwrite("})
      EXPECT_EQ(source.find(word), std::string::npos)
          << entry.path() << " has " << word
          << "; print_output() of fullbore/app/output.h was expected";
  }
}

TEST_F(UnwritableOutput, OfALinkIsLeftWhereTheCommandFails) {
  folder_.put("real.json", "old");
  fs::create_symlink("real.json", folder_ / "link.json");
  ASSERT_EQ(command({"record", "nowhere", "-o", "link.json", "--force"}).exit_code, 3);
  EXPECT_EQ(read("real.json"), "old");
}

}  // namespace
}  // namespace fullbore
