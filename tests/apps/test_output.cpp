// Every command with a standard output, a standard error or files that cannot be written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/command_tree.h"
#include "apps/commands.h"
#include "fullbore/base/files.h"
#include "tests/apps/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A cheap call of a command.
struct Row {
  std::vector<std::string> arguments;
  bool prints = true;  ///< false: its result is a file, and its words are messages
  std::vector<std::string> writes = {};  ///< the files that its options name
};

/// By the command's name, "data stats"; behind a " --" stands what else a second row is about. OutputRows.* says
/// what is missing.
const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all = {
      {"train",
       {{"train", "job.yaml", "data.path=text.txt", "train.steps=2", "run.dir=fresh",
         "train.sample_characters=5"}}},
      {"eval", {{"eval", "runs/tiny-1"}}},
      {"predict",
       {{"predict", "peptides", "spectra.mgf", "-o", "found.mztab"}, false, {"found.mztab"}}},
      {"generate", {{"generate", "runs/tiny-1", "--characters", "3"}}},
      {"generate --state-out",
       {{"generate", "streams", "--characters", "3", "--state-out", "kept.state"},
        true,
        {"kept.state"}}},
      {"export", {{"export", "runs/tiny-1", "-o", "exported"}, true, {"exported"}}},
      {"data tokenize",
       {{"data", "tokenize", "text.txt", "--out", "out.tokens"}, true, {"out.tokens"}}},
      {"data inspect", {{"data", "inspect", "text.tokens"}}},
      {"data stats", {{"data", "stats", "text.tokens"}}},
      {"data train-tokenizer",
       {{"data", "train-tokenizer", "text.txt", "--vocabulary", "260", "--out", "out.json"},
        true,
        {"out.json"}}},
      {"peptide ions", {{"peptide", "ions", "PEPTIDE"}}},
      {"peptide convert",
       {{"peptide", "convert", "spectra.mgf", "--min-length", "5", "-o", "out.cache"},
        true,
        {"out.cache"}}},
      {"peptide generate",
       {{"peptide", "generate", testing::source_folder() + "/configs/peptide-cpu.yaml", "--count",
         "2", "-o", "made.mgf"},
        true,
        {"made.mgf"}}},
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
      {"metrics", {{"metrics", "runs/tiny-1"}}},
      {"record", {{"record", "runs/tiny-1"}}},
      {"record --output", {{"record", "runs/tiny-1", "-o", "record.json"}, false, {"record.json"}}},
      {"replay-step", {{"replay-step", "bad", "--fast"}}},
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
      {"doctor", {{"doctor"}}},
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

std::map<std::string, CommandDescription> leaves(const CommandDescription& command,
                                                 const std::string& above = "") {
  std::map<std::string, CommandDescription> found;
  for (const CommandDescription& inner : command.subcommands) {
    const std::string name = above.empty() ? inner.name : above + ' ' + inner.name;
    if (inner.subcommands.empty()) found.emplace(name, inner);
    found.merge(leaves(inner, name));
  }
  return found;
}

std::map<std::string, CommandDescription> every_command() {
  CommandParser parser("fullbore", "", [] { return std::string(); });
  add_commands(parser.root());
  return leaves(parser.root().describe());
}

std::string command_of_row(const std::string& name) { return name.substr(0, name.find(" --")); }

TEST(OutputRows, KnowEveryCommand) {
  std::set<std::string> known, there;
  for (const auto& [name, row] : rows())
    if (!name.starts_with("--")) known.insert(command_of_row(name));
  for (const auto& [name, command] : every_command()) there.insert(name);
  EXPECT_EQ(there, known)
      << "a command without a row here is not tested with a full disk and a closed pipe";
}

TEST(OutputRows, KnowEveryOptionThatNamesAFile) {
  const std::set<std::string> files = {"output", "out",   "json",    "csv",
                                       "svg",    "trace", "answers", "state-out"};
  for (const auto& [command, description] : every_command())
    for (const OptionDescription& option : description.options) {
      if (!option.takes_value || option.long_names.empty()) continue;
      if (!files.contains(option.long_names.front())) continue;
      const bool known = std::ranges::any_of(rows(), [&](const auto& each) {
        const std::vector<std::string>& words = each.second.arguments;
        return command_of_row(each.first) == command && !each.second.writes.empty() &&
               (std::ranges::find(words, option.name()) != words.end() ||
                (!option.short_names.empty() &&
                 std::ranges::find(words, "-" + option.short_names.front()) != words.end()));
      });
      EXPECT_TRUE(known) << command << ' ' << option.name() << " is not tested with a full disk";
    }
}

constexpr const char* kPeptideConfig =
    "data: {min_length: 5, max_length: 6, validation_spectra: 16, min_peaks: 5}\n"
    "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
    "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 2,\n"
    "  num_latent_steps: 2}\n"
    "train: {steps: 1, batch_size: 8, curriculum: none}\n";
constexpr const char* kSpectra =
    "BEGIN IONS\nTITLE=first\nPEPMASS=257.6290\nCHARGE=2+\nSEQ=PEPTA\n"
    "98.06 1\n227.103 2\n324.155 3\n425.203 2\n90.055 4\n191.103 5\n288.155 6\n417.198 7\n"
    "88.1 1\n99.2 1\n110.3 1\n120.1 1\n130.1 1\n140.1 1\n150.1 1\n160.1 1\n170.1 1\n180.1 1\n"
    "201.1 1\n202.1 1\n203.1 1\n204.1 1\nEND IONS\n";

constexpr const char* kStreamConfig =
    "data: {tokenizer: recorded, batching: sequences, split: sequences, validation_fraction: 0.2,\n"
    "  initial_state: carry}\n"
    "model: {name: hybrid, layers: 1, heads: 2, width: 16, context: 8, inner: 32,\n"
    "  mamba_heads: 2, states: 4, hidden: 32, mix_rank: 4, decay_rank: 4, chunk: 8}\n"
    "train: {steps: 1, batch_size: 4, eval_batches: 1, sample_characters: 0}\n";

class UnwritableOutput : public JobTest {
 protected:
  UnwritableOutput() {
    folder_.put("streams.yaml", kStreamConfig);
    folder_.put("peptide.yaml", kPeptideConfig);
    folder_.put("spectra.mgf", kSpectra);
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
  /// Runs and files that the rows read.
  void prepare() {
    ASSERT_EQ(train({"train.steps=2"}).exit_code, 0);
    ASSERT_EQ(command({"train", "peptide.yaml", "run.dir=peptides"}).exit_code, 0);
    const CommandResult streams =
        command({"train", "streams.yaml", "data.path=text.txt", "run.dir=streams"});
    ASSERT_EQ(streams.exit_code, 0) << streams.err;
    ASSERT_EQ(command({"data", "tokenize", "text.txt", "--out", "text.tokens"}).exit_code, 0);
    ASSERT_EQ(train({"run.dir=diverges", "optim.learning_rate=1e15", "optim.clip_norm=0",
                     "train.steps=9", "train.max_skipped_steps=1"})
                  .exit_code,
              4);
    fs::rename(fs::directory_iterator(folder_ / "diverges/bad_steps")->path(), folder_ / "bad");
  }
  /// Runs a row as if it were the first time.
  CommandResult run(const Row& row, const CommandStreams& streams) const {
    for (const std::string& file : row.writes) fs::remove_all(folder_ / file);
    fs::remove_all(folder_ / "fresh");
    return run_command_with(streams, folder_.path(), row.arguments);
  }
  /// All rows with this standard output: `unwritable` judges those that print.
  void run_all(Stream out, const std::function<void(const CommandResult&)>& unwritable) {
    prepare();
    ASSERT_FALSE(HasFatalFailure());
    for (const auto& [name, row] : rows()) {
      SCOPED_TRACE(name);
      const CommandResult result = run(row, {.out = out});
      // A text that nobody reads is not made to its end, and has no state to keep.
      for (const std::string& file : row.writes)
        EXPECT_TRUE(fs::exists(folder_ / file) || name == "generate --state-out")
            << "what " << file << " was to hold is lost";
      EXPECT_THAT(result.err, Not(AnyOf(HasSubstr("a bug of ours"), HasSubstr("warning"))));
      if (!row.prints) {
        EXPECT_EQ(result.exit_code, 0) << result.err;
      } else if (name == "train") {
        expect_done_without(result);
      } else {
        unwritable(result);
      }
    }
  }
  /// A run ends as if its terminal were there, says in its log what is missing, and with code 3.
  void expect_done_without(const CommandResult& result) const {
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_EQ(summary("fresh")["status"], "completed");
    EXPECT_EQ(summary("fresh")["steps"], 2);
    EXPECT_THAT(read("fresh/log.txt"), HasSubstr("cannot write standard "));
  }
};

TEST_F(UnwritableOutput, OfAFullDeviceIsExitCode3AndNamed) {
  run_all(Stream::full, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "fullbore: cannot write standard output: No space left on device\n");
  });
}

TEST_F(UnwritableOutput, OfAClosedPipeEndsTheCommandWithoutAWord) {
  run_all(Stream::closed_pipe, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 128 + SIGPIPE);
    EXPECT_EQ(result.err, "");
  });
}

TEST_F(UnwritableOutput, OfAClosedDescriptorIsExitCode3AndNamed) {
  run_all(Stream::closed, [](const CommandResult& result) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.err, "fullbore: cannot write standard output: Bad file descriptor\n");
  });
}

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

TEST_F(UnwritableOutput, OfAFullDiskIsExitCode3AndNamesTheFile) {
  prepare();
  ASSERT_FALSE(HasFatalFailure());
  for (const auto& [name, row] : rows()) {
    if (row.writes.empty()) continue;
    SCOPED_TRACE(name);
    ASSERT_EQ(run(row, {}).exit_code, 0) << "once with a disk: what can be cached is cached";
    const auto before = folder_contents(folder_.path());
    const CommandResult result = run(row, {.full_disk = true});
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_THAT(result.err, HasSubstr("File too large"));
    EXPECT_THAT(result.err, HasSubstr(row.writes.front()));
    for (const auto& [file, contents] : folder_contents(folder_.path()))
      EXPECT_TRUE(before.contains(file) || !contents.empty()) << file << " was left behind";
  }
}

// Not /dev/full itself: a mistake would put a file in its place.
TEST_F(UnwritableOutput, OfAPipeNamedAsAFileIsWrittenThroughIt) {
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

TEST(OutputRows, NothingButOutputWritesToStandardStreams) {
  for (const fs::directory_entry& entry :
       fs::directory_iterator(testing::source_folder() + "/apps")) {
    if (entry.path().filename() == "output.cpp") continue;
    const std::string source = read_file(entry.path().string()).value();
    for (const char* word :
         {"fmt::print(", "std::cout", "std::cerr", "printf(", "fputs(", "fwrite("})
      EXPECT_EQ(source.find(word), std::string::npos)
          << entry.path() << " has " << word << "; print_output() of apps/output.h was expected";
  }
}

TEST_F(UnwritableOutput, OfALinkIsWrittenWhereItLeads) {
  folder_.put("real.json", "old");
  fs::create_symlink("real.json", folder_ / "link.json");
  ASSERT_EQ(command({"record", "nowhere", "-o", "link.json", "--force"}).exit_code, 3);
  EXPECT_EQ(read("real.json"), "old");
  ASSERT_EQ(command({"longcontext", "niah", "oracle", "--lengths", "64", "--depths", "50",
                     "--trials", "1", "--json", "link.json"})
                .exit_code,
            0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_THAT(read("real.json"), HasSubstr("\"cells\""));
}

}  // namespace
}  // namespace fullbore
