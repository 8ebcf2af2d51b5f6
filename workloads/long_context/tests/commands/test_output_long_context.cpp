#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <algorithm>

#include <filesystem>

#include "tests/support/output_rows.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const OutputRows& rows() {
  static const OutputRows all = {
      {"longcontext niah",
       {{"longcontext", "niah", "oracle", "--lengths", "64", "--depths", "50", "--trials", "1",
         "--json", "niah.json", "--csv", "niah.csv", "--svg", "niah.svg"},
        true,
        {"niah.json", "niah.csv", "niah.svg"}}},
      {"longcontext mqar",
       {{"longcontext", "mqar", "oracle", "--sizes", "64:2", "--examples", "2", "--json",
         "mqar.json"},
        true,
        {"mqar.json"}}},
      {"longcontext longbench",
       {{"longcontext", "longbench", "runs/tiny-1", "items.jsonl", "--room", "2", "--json",
         "bench.json", "--answers", "answers.jsonl"},
        true,
        {"bench.json", "answers.jsonl"}}},
      {"longcontext infinitebench",
       {{"longcontext", "infinitebench", "runs/tiny-1", "passkey.jsonl", "--room", "2", "--json",
         "bench.json", "--answers", "answers.jsonl"},
        true,
        {"bench.json", "answers.jsonl"}}},
      {"longcontext usable-length",
       {{"longcontext", "usable-length", "1K:0.9", "2K:0.5", "--svg", "usable.svg"},
        true,
        {"usable.svg"}}},
      {"longcontext ruler",
       {{"longcontext", "ruler", "random", "--lengths", "2K", "--examples", "1", "--tasks",
         "niah_single_1", "--json", "ruler.json", "--answers", "answers.jsonl"},
        true,
        {"ruler.json", "answers.jsonl"}}},
      {"longcontext babilong",
       {{"longcontext", "babilong", "random", "--background", "play.txt", "--lengths", "2K",
         "--examples", "1", "--tasks", "qa1", "--json", "babilong.json", "--answers",
         "answers.jsonl"},
        true,
        {"babilong.json", "answers.jsonl"}}},
      {"longcontext mrcr",
       {{"longcontext", "mrcr", "runs/tiny-1", "mrcr.jsonl", "--room", "2", "--json", "mrcr.json",
         "--answers", "answers.jsonl"},
        true,
        {"mrcr.json", "answers.jsonl"}}},
      {"longcontext phases", {{"longcontext", "phases", "niah-report.json"}}},
  };
  return all;
}

class LongContextOutput : public OutputRowsTest {
 protected:
  LongContextOutput() : OutputRowsTest(rows()) {
    folder_.put("items.jsonl", R"({"input": "the", "context": "the sea is", "answers": ["calm"], )"
                               R"("dataset": "hotpotqa", "language": "en", "_id": "1"})");
    folder_.put("play.txt",
                "A sea. It is calm, tonight. Who is there? It is I, and nobody else.\n");
    folder_.put(
        "mrcr.jsonl",
        R"({"prompt": "[{\"role\": \"user\", \"content\": \"the sea\"}]", "answer": "Xy12the sea", )"
        R"("random_string_to_prepend": "Xy12", "n_needles": 2})"
        "\n");
    folder_.put("passkey.jsonl", R"({"context": "the sea", "input": "is", "answer": "1"})");
    folder_.put("niah-report.json", R"({"kind": "niah", "model": "m", "gate_16k": "passed"})");
  }
  void prepare() override { ASSERT_EQ(train({"train.steps=2"}).exit_code, 0); }
};

TEST(LongContextOutputRows, KnowEveryCommand) {
  expect_rows_of_workloads(rows(), {"long_context"});
}

TEST_F(LongContextOutput, OfAFullDeviceIsExitCode3AndNamed) { expect_full_device_named(); }

TEST_F(LongContextOutput, OfAClosedPipeEndsTheCommandWithoutAWord) {
  expect_closed_pipe_ends_without_a_word();
}

TEST_F(LongContextOutput, OfAClosedDescriptorIsExitCode3AndNamed) {
  expect_closed_descriptor_named();
}

TEST_F(LongContextOutput, OfAFullDiskIsExitCode3AndNamesTheFile) { expect_full_disk_named(); }

// Not /dev/full itself: a mistake would put a file in its place.
TEST_F(LongContextOutput, OfAPipeNamedAsAFileIsWrittenThroughIt) {
  const std::vector<std::string> niah = {"longcontext", "niah", "oracle",   "--lengths", "64",
                                         "--depths",    "50",   "--trials", "1",         "--json"};
  ASSERT_EQ(mkfifo((folder_ / "pipe.json").c_str(), 0666), 0);
  const int reader = open((folder_ / "pipe.json").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::vector<std::string> through_pipe = niah;
  through_pipe.emplace_back("pipe.json");
  EXPECT_EQ(command(through_pipe).exit_code, 0);
  std::string text(1 << 16, '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, text.data(), text.size()))));
  close(reader);
  EXPECT_THAT(text, HasSubstr("\"cells\""));
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe.json")) << "a file took the place of the pipe";

  fs::create_symlink("/proc/self/fd/1", folder_ / "out.json");  // what /dev/stdout is
  std::vector<std::string> out = niah;
  out.emplace_back("out.json");
  const CommandResult piped = run_command_with({}, folder_.path(), out);
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_THAT(piped.out, HasSubstr("\"cells\""));
  EXPECT_TRUE(fs::is_symlink(folder_ / "out.json"));
  const CommandResult full = run_command_with({.out = Stream::full}, folder_.path(), out);
  EXPECT_EQ(full.exit_code, 3);
  EXPECT_THAT(full.err, HasSubstr("cannot write out.json: No space left on device"));
}

TEST_F(LongContextOutput, OfALinkIsWrittenWhereItLeads) {
  folder_.put("real.json", "old");
  std::filesystem::create_symlink("real.json", folder_ / "link.json");
  ASSERT_EQ(command({"longcontext", "niah", "oracle", "--lengths", "64", "--depths", "50",
                     "--trials", "1", "--json", "link.json"})
                .exit_code,
            0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.json"));
  EXPECT_THAT(read("real.json"), HasSubstr("\"cells\""));
}

}  // namespace
}  // namespace fullbore
