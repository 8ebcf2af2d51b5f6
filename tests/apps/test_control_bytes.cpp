// What a stranger writes into files never steers the terminal of who looks at them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/apps/job.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Arguments = std::vector<std::string>;

// A colour, the bell, an erased screen by the one-character CSI of C1, and DEL.
const std::string kPlanted =
    "\x1b[31m\x07\xc2\x9b"
    "2J\x7f";
// The same for JSON and for YAML in double quotes.
const std::string kPlantedJson = "\\u001b[31m\\u0007\\u009b2J\\u007f";

/// Where a text holds what a terminal would obey; "" if nowhere.
std::string steering(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xc2 && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xe0U) == 0x80;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || is_c1)
      return fmt::format("byte {:#x} behind '{}'", byte, text.substr(i < 80 ? 0 : i - 80, 80));
  }
  return "";
}

class ControlBytesTest : public JobTest {
 protected:
  /// Runs the command, whatever its exit code: nothing of it steers, and what was planted is shown in escapes.
  void expect_escaped(const Arguments& arguments, bool is_shown = true) const {
    const CommandResult result = command(arguments);
    SCOPED_TRACE(fmt::format("{} ... {}: exit code {}\n{}{}", arguments.front(), arguments.back(),
                             result.exit_code, result.out, result.err));
    EXPECT_NE(result.exit_code, 1);
    EXPECT_LT(result.exit_code, 76);
    EXPECT_EQ(steering(result.out), "");
    EXPECT_EQ(steering(result.err), "");
    if (!is_shown) return;
    const std::string all = result.out + result.err;
    EXPECT_TRUE(all.find("\\x1b[31m\\x07") != std::string::npos ||
                all.find("\\u001b[31m\\u0007") != std::string::npos);
  }
  void put_run(const std::string& name) const {
    ASSERT_EQ(train({"run.dir=" + name, "train.steps=2", "train.checkpoint_interval=1"}).exit_code,
              0);
  }
};

TEST_F(ControlBytesTest, SteeringIsFound) {
  EXPECT_EQ(steering("two\nlines\tof Grün"), "");
  for (const char* bad : {"\x1b[0m", "\x07", "\r", "\x7f", "\xc2\x9b"})
    EXPECT_NE(steering(bad), "");
}

TEST_F(ControlBytesTest, OfFoldersAndFilesByTheirNames) {
  put_run("run");
  const std::string gift = "gift" + kPlanted;
  fs::rename(folder_ / "run", folder_ / gift);
  for (const Arguments& arguments : std::vector<Arguments>{
           {"eval", gift},
           {"eval", gift, "--json"},
           {"export", gift, "-o", "x" + kPlanted},
           {"export", gift, "--int8", "-o", "y" + kPlanted},
           {"plan", gift},
           {"record", gift},
           {"train", gift, "--resume"},
           {"longcontext", "usable-length", gift + ".json"},
           {"replay-step", gift},
           {"metrics", gift + "/nothing"},
           {"data", "stats", gift},
           {"bench", gift + "/none.yaml"},
           {"profile", gift + "/none.yaml"},
           {"predict", gift, "none" + kPlanted, "-o", "a.csv"},
       })
    expect_escaped(arguments, arguments[0] != "replay-step" && arguments[0] != "plan" &&
                                  arguments[0] != "record");
  // The text of a model is the output itself; what stands beside it is none.
  expect_escaped({"generate", gift, "--characters", "3"}, false);
  expect_escaped({"generate", "no" + kPlanted});
  expect_escaped({kPlanted}, true);
  expect_escaped({"train", "job.yaml", "data.path=text.txt", kPlanted + "=1"});
  expect_escaped({"config", kPlanted});
  expect_escaped({"ops", kPlanted});
}

TEST_F(ControlBytesTest, OfRecordsOfARun) {
  put_run("run");
  folder_.put("lines.jsonl", "{\"kind\": \"" + kPlantedJson + "\", \"" + kPlantedJson + "\": \"" +
                                 kPlantedJson + "\"}\n");
  expect_escaped({"metrics", "lines.jsonl"});
  expect_escaped({"metrics", "lines.jsonl", "--csv"});
  expect_escaped({"metrics", "lines.jsonl", "--kind", "none"});
  folder_.put("run/metrics.jsonl", read("run/metrics.jsonl") + "{\"kind\": \"x" + kPlantedJson +
                                       "\"}\n" + kPlanted + "\n");
  expect_escaped({"metrics", "run"});
  expect_escaped({"record", "run"}, false);
  folder_.put("run/summary.json", "{\"" + kPlantedJson + "\": " + kPlanted);
  expect_escaped({"record", "run"}, false);
  expect_escaped({"metrics", "run"});
  folder_.put("record.json", "{\"name\": \"" + kPlantedJson + "\", \"" + kPlantedJson + "\": 1}");
  expect_escaped({"record", "run", "--baseline", "record.json"}, false);
}

TEST_F(ControlBytesTest, OfConfigurations) {
  const auto with = [&](const std::string& line) {
    folder_.put("gift.yaml", read("job.yaml") + line);
    return Arguments{"train", "gift.yaml", "data.path=text.txt", "train.steps=1"};
  };
  expect_escaped(with("\"" + kPlantedJson + "\": 1\n"));
  expect_escaped(with("engine2: {\"" + kPlantedJson + "\": 1}\n"), false);
  folder_.put("bytes.yaml", kPlanted + ": " + kPlanted);
  expect_escaped({"train", "bytes.yaml"}, false);
  for (const char* key : {"run.name", "model.name", "optim.name", "data.path", "data.tokenizer",
                          "optim.groups", "engine.precision"}) {
    SCOPED_TRACE(key);
    const auto value = fmt::format("{}={}", key, kPlanted);
    for (const char* name : {"train", "plan", "bench"})
      expect_escaped({name, "job.yaml", "data.path=text.txt", "train.steps=1", value},
                     std::string_view(key) != "run.name");
  }
  folder_.put("peptide.yaml",
              "model: {name: peptide, hidden_dim: 48, num_heads: 2}\n"
              "data: {modifications: [\"" +
                  kPlantedJson + "\"]}\n");
  expect_escaped({"train", "peptide.yaml"});
  folder_.put("stages.yaml",
              "model: {name: peptide, hidden_dim: 48, num_heads: 2}\n"
              "train: {curriculum_stages: [\"steps=2 name=" +
                  kPlantedJson + "\"]}\n");
  expect_escaped(
      {"peptide", "generate", "stages.yaml", "-o", "a.mgf", "--count", "1", "--stage", "none"});
  expect_escaped(
      {"peptide", "generate", "stages.yaml", "-o", "a.mgf", "--count", "1", "--stage", "1"});
}

TEST_F(ControlBytesTest, OfTextsAndTokenizers) {
  folder_.put("gift.txt", kPlanted + " a\n" + kPlanted + " b\n");
  // Each token by itself: what is escaped is a character.
  for (const char* tokenizer : {"character", "byte"}) {
    expect_escaped({"data", "stats", "gift.txt", "--tokenizer", tokenizer}, false);
    expect_escaped({"data", "stats", "gift.txt", "--tokenizer", tokenizer, "--json"}, false);
  }
  ASSERT_EQ(command({"data", "tokenize", "gift.txt", "--out", "gift.tokens"}).exit_code, 0);
  expect_escaped({"data", "inspect", "gift.tokens"}, false);
  expect_escaped({"data", "inspect", "gift.tokens", "--json"}, false);
  expect_escaped({"data", "inspect", "gift.tokens", "--document", "0", "--tokens", "9"}, false);
  EXPECT_THAT(command({"data", "inspect", "gift.tokens", "--document", "0", "--tokens", "9"}).out,
              HasSubstr("\\u001b"));
  // A document is the output itself: to a file as it is, so that it can be had back; not to a terminal.
  const Arguments document = {"data", "inspect", "gift.tokens", "--document", "0"};
  EXPECT_EQ(command(document).out, read("gift.txt") + "\n");
  const std::string shown = run_command_on_terminal(folder_.path(), document, 80).out;
  EXPECT_THAT(shown, HasSubstr("\\x1b[31m\\x07\\x9b2J\\x7f a"));
  EXPECT_THAT(shown, Not(HasSubstr("\x1b[31m")));
  fs::create_directory(folder_ / "bpe");
  folder_.put("bpe/vocab.json", "{\"" + kPlantedJson + "\": 0}");
  folder_.put("bpe/merges.txt", kPlanted + " " + kPlanted + "\n");
  expect_escaped({"data", "stats", "text.txt", "--tokenizer", "bpe:bpe"}, false);
  folder_.put("documents.jsonl", "{\"" + kPlantedJson + "\": \"" + kPlantedJson + "\"}\n");
  expect_escaped({"data", "stats", "documents.jsonl"}, false);
}

TEST_F(ControlBytesTest, OfSpectraAndPeptides) {
  folder_.put(
      "peptide.yaml",
      "data: {min_length: 5, max_length: 6, validation_spectra: 8, min_peaks: 1}\n"
      "model: {name: peptide, hidden_dim: 48, num_encoder_layers: 1, num_decoder_layers: 1,\n"
      "  num_heads: 2, max_peaks: 14, max_seq_len: 9, num_supervision_steps: 1,\n"
      "  num_latent_steps: 1}\n"
      "train: {steps: 1, batch_size: 4, curriculum: none}\n");
  ASSERT_EQ(command({"train", "peptide.yaml", "run.dir=run"}).exit_code, 0);
  const auto block = [](const std::string& title, const std::string& sequence,
                        const std::string& charge) {
    return "BEGIN IONS\nTITLE=" + title + "\nPEPMASS=257.629\nCHARGE=" + charge +
           "\nSEQ=" + sequence + "\n98.06 1\n227.103 2\nEND IONS\n";
  };
  folder_.put("good.mgf", block("a", "PEPTA", "2+"));
  folder_.put("title.mgf", block(kPlanted, "PEPT" + kPlanted, "2+"));
  folder_.put("charge.mgf", block("a", "PEPTA", "2+" + kPlanted));
  folder_.put("between.mgf", kPlanted + "\n" + block("a", "PEPTA", "2+"));
  folder_.put("a.msp",
              "Name: PEPT" + kPlanted + "/2\nMW: 513\nNum peaks: " + kPlanted + "\n1 1\n\n");
  folder_.put("field.msp", "Name: PEPTA/2\nMW" + kPlanted + "\n\n");
  folder_.put("a.mzML", "<mzML><" + kPlanted + "/></mzML>");
  folder_.put("root.mzML", "<x\xc2\x9bx/>");
  folder_.put("id.mzML",
              "<mzML>\n<spectrum id=\"a\xc2\x9b\x7f\"><cvParam accession=\"MS:1000511\" "
              "value=\"2\"/></spectrum></mzML>");
  folder_.put("a.csv", "mz_array," + kPlanted + "\n1,2\n");
  for (const char* file : {"title.mgf", "charge.mgf", "between.mgf", "a.msp", "field.msp", "a.mzML",
                           "root.mzML", "id.mzML", "a.csv"})
    for (const char* policy : {"fail", "skip", "try-charges"}) {
      SCOPED_TRACE(policy);
      expect_escaped(
          {"predict", "run", file, "-o", "a.mztab", "--force", "--on-bad-spectrum", policy}, false);
      expect_escaped(
          {"peptide", "convert", file, "-o", "a.cache", "--force", "--on-bad-spectrum", policy},
          false);
      expect_escaped({"eval", "run", "--data", file, "--on-bad-spectrum", policy, "--json"}, false);
    }
  expect_escaped({"peptide", "convert", "charge.mgf", "-o", "b", "--on-bad-spectrum", "fail"});
  expect_escaped({"peptide", "ions", "PEP" + kPlanted});
  const std::string sequence = "spectrum_id,sequence,score\na,PEPT" + kPlanted + ",1\n";
  folder_.put("sequence.csv", sequence);
  folder_.put("header.csv", "spectrum" + kPlanted + ",seq\n1,2\n");
  folder_.put("score.csv", "spectrum_id,sequence,score\na,PEPTA," + kPlanted + "\n");
  for (const char* file : {"sequence.csv", "header.csv", "score.csv"}) {
    expect_escaped({"eval", file, "--data", "good.mgf"}, file != std::string("sequence.csv"));
    expect_escaped({"eval", "run", "--data", "good.mgf", "--against", file, "--json"}, false);
  }
}

TEST_F(ControlBytesTest, OfLongContexts) {
  folder_.put("niah.json", "{\"model\": \"" + kPlantedJson +
                               "\", \"lengths\": [{\"length\": 100, \"accuracy\": 0.9}]}");
  folder_.put("keys.json", "{\"" + kPlantedJson + "\": 1}");
  folder_.put("text.json", "{\"lengths\": [{\"length\": \"" + kPlantedJson + "\"}]}");
  expect_escaped({"longcontext", "usable-length", "niah.json", "other=100:0.9"});
  expect_escaped({"longcontext", "usable-length", "niah.json", "other=100:0.9", "--json"});
  expect_escaped({"longcontext", "usable-length", "niah.json", "other=100:0.9", "--svg", "-"},
                 false);
  expect_escaped({"longcontext", "usable-length", "keys.json"}, false);
  expect_escaped({"longcontext", "usable-length", "text.json"}, false);
  put_run("run");
  folder_.put("items.jsonl", "{\"" + kPlantedJson + "\": \"" + kPlantedJson + "\"}\n" + kPlanted);
  for (const char* suite : {"mrcr", "longbench", "infinitebench"})
    expect_escaped({"longcontext", suite, "run", "items.jsonl"}, false);
  folder_.put("task.jsonl", "{\"_id\": \"" + kPlantedJson + "\", \"dataset\": \"" + kPlantedJson +
                                "\", \"input\": \"q\", \"context\": \"c\", \"answers\": [\"" +
                                kPlantedJson + "\"], \"all_classes\": null}\n");
  expect_escaped({"longcontext", "longbench", "run", "task.jsonl", "--answers", "-"}, false);
  folder_.put("answers.jsonl", "{\"id\": \"" + kPlantedJson + "\", \"answer\": \"x\"}\n");
  expect_escaped({"longcontext", "niah", "oracle", "--lengths", "100", "--score", "answers.jsonl"});
}

}  // namespace
}  // namespace fullbore
