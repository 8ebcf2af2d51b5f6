#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>

#include "fullbore/data/token_corpus.h"
#include "fullbore/data/tokenizer.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

const std::string kBpe = "bpe:" + testing::source_folder() + "/tests/data/golden/tokenizer.json";

using DataCommand = JobTest;

TEST_F(DataCommand, TokenizesInspectsAndCounts) {
  folder_.put("d.jsonl", "{\"body\": \"one sea\"}\n{\"body\": \"two seas\"}\n");
  const CommandResult made = command(
      {"data", "tokenize", "d.jsonl", "--field", "body", "--tokenizer", kBpe, "--out", "d.tokens"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("(byte-level BPE), 2 documents"));
  const CommandResult shown = command({"data", "inspect", "d.tokens"});
  EXPECT_THAT(shown.out,
              HasSubstr("2 documents in 1 file; end of document: 600 \"<|endoftext|>\""));
  EXPECT_THAT(shown.out, HasSubstr("checksums   all hold"));
  EXPECT_EQ(command({"data", "inspect", "d.tokens", "--document", "1"}).out,
            "two seas<|endoftext|>\n");
  const CommandResult json = command({"data", "inspect", "d.tokens", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)[0]["documents"], 2);
  const CommandResult stats = command({"data", "stats", "d.tokens", "--json"});
  const nlohmann::json counted = nlohmann::json::parse(stats.out);
  EXPECT_EQ(counted["text_bytes"], 15);
  EXPECT_EQ(counted["vocabulary_size"], 601);
  const CommandResult text = command({"data", "stats", "text.txt"});
  EXPECT_THAT(text.out, HasSubstr("tokenizer   characters"));
  EXPECT_THAT(text.out, HasSubstr("most frequent"));
}

TEST_F(DataCommand, LearnsATokenizerThatTrainingUses) {
  ASSERT_EQ(
      command({"data", "train-tokenizer", "text.txt", "--vocabulary", "270", "--out", "t.json"})
          .exit_code,
      0);
  const CommandResult trained = train({"data.tokenizer=bpe:t.json", "run.dir=run"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("tokens (byte-level BPE), 270 distinct"));
  std::filesystem::remove(folder_ / "t.json");  // the checkpoint has it
  const CommandResult generated =
      command({"generate", "run", "--prompt", "the sea", "--characters", "5"});
  EXPECT_EQ(generated.exit_code, 0) << generated.err;
  EXPECT_THAT(generated.out, ::testing::StartsWith("the sea"));
  EXPECT_EQ(command({"generate", "run", "--characters", "3"}).exit_code, 0);
  const CommandResult evaluated = command({"eval", "run", "--json"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_TRUE(nlohmann::json::parse(evaluated.out).contains("bits_per_byte"));
  // Exported, it is where transformers looks for it, and where we do.
  ASSERT_EQ(command({"export", "run", "-o", "exported"}).exit_code, 0);
  const auto kept = load_tokenizer(folder_ / "exported");
  ASSERT_TRUE(kept.ok()) << kept.error();
  EXPECT_EQ(kept.value()->vocabulary_size(), 270);
}

TEST_F(DataCommand, TrainingIsTheSameFromTextShardsAndStandardInput) {
  ASSERT_EQ(command({"data", "tokenize", "text.txt", "--tokenizer", "byte"}).exit_code, 0);
  const auto losses = [&](const std::vector<std::string>& settings, const char* run) {
    std::vector<std::string> all = settings;
    all.push_back(std::string("run.dir=") + run);
    const CommandResult result = train(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return without_times(metrics(run));
  };
  const auto from_text = losses({"data.tokenizer=byte"}, "a");
  EXPECT_EQ(losses({"data.path=text.tokens"}, "b"), from_text);
  EXPECT_EQ(losses({"data.path=text*.txt", "data.tokenizer=byte"}, "c"), from_text);
  const std::string piped = "cd '" + folder_.path() + "' && cat text.txt | " +
                            testing::command_path() +
                            " train job.yaml data.path=- data.tokenizer=byte run.dir=d "
                            ">/dev/null 2>&1";
  EXPECT_EQ(std::system(piped.c_str()), 0);
  EXPECT_EQ(without_times(metrics("d")), from_text);
  EXPECT_EQ(command({"train", "d", "--resume", "train.steps=25"}).exit_code, 0)
      << "standard input is kept";
}

TEST_F(DataCommand, SplitsByDocumentAndFile) {
  std::filesystem::create_directories(folder_ / "in");
  const std::string text = read("text.txt");
  folder_.put("in/a.txt", text.substr(0, 3000));
  folder_.put("in/b.txt", text.substr(3000));
  const CommandResult result =
      train({"data.path=in", "data.split=file", "data.validation_fraction=0.1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("; 3000 to train on, "));
  const CommandResult refused = train({"data.split=document"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err,
              HasSubstr("all of it is one document, which data.split must not divide"));
}

struct Case {
  std::vector<std::string> arguments;
  int exit_code;
  const char* message;
};

TEST_F(DataCommand, RefusesInOneLineAndLeavesNothing) {
  folder_.put("latin1.txt", "caf\xe9");
  folder_.put("bad.jsonl", "{\"text\": \"a\"}\n{\"text\": 1}\n");
  ASSERT_EQ(command({"data", "tokenize", "text.txt", "--out", "t.tokens"}).exit_code, 0);
  std::string damaged = read("t.tokens");
  damaged[100] ^= 1;
  folder_.put("damaged.tokens", damaged);
  std::filesystem::create_directories(folder_ / "mixed");
  std::filesystem::copy(folder_ / "t.tokens", folder_ / "mixed/a");
  folder_.put("mixed/b", "text");
  const Case cases[] = {
      {{"data"}, 2, "data: a subcommand was expected"},
      {{"data", "tokenise", "x"}, 2, "no subcommand 'tokenise'. Did you mean 'tokenize'?"},
      {{"data", "tokenize"}, 2, "data tokenize: SOURCE is required"},
      {{"data", "tokenize", "text.txt", "--feild", "x"}, 2, "Did you mean '--field'?"},
      {{"data", "tokenize", "text.txt", "--tokenizer", "bytes"}, 2, "Did you mean 'byte'?"},
      {{"data", "tokenize", "text.txt", "--out", "t.tokens"}, 2, "--force replaces it"},
      {{"data", "tokenize", "none.txt"}, 3, "none.txt: No such file"},
      {{"data", "tokenize", "latin1.txt"}, 3, "latin1.txt: not UTF-8 text"},
      {{"data", "tokenize", "bad.jsonl"}, 3, "bad.jsonl:2: the field 'text' is a number"},
      {{"data", "tokenize", "text.txt", "--tokenizer", "bpe:none"}, 3, "cannot open none"},
      {{"data", "inspect", "text.txt"}, 3, "not a token shard"},
      {{"data", "inspect", "damaged.tokens"}, 3, "the checksum of bytes 64-"},
      {{"data", "inspect", "t.tokens", "--document", "1"}, 2, "there is no document 1"},
      {{"data", "stats", "mixed"}, 3, "holds token shards and other files"},
      {{"data", "train-tokenizer", "text.txt", "--vocabulary", "256"}, 3, "at least 257"},
  };
  const auto before = folder_contents(folder_.path());
  for (const Case& c : cases) {
    const CommandResult result = command(c.arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << c.message;
    EXPECT_THAT(result.err, HasSubstr(c.message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
  }
  EXPECT_EQ(folder_contents(folder_.path()), before);
}

}  // namespace
}  // namespace fullbore
