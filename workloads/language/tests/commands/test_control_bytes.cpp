// What a stranger writes into files never steers the terminal of who looks at them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/support/control_bytes_test.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

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
           {"replay-step", gift},
           {"metrics", gift + "/nothing"},
           {"data", "stats", gift},
           {"bench", gift + "/none.yaml"},
           {"profile", gift + "/none.yaml"},
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

// A name may hold a line's end, too: it would begin a row of its own.
TEST_F(ControlBytesTest, OfTablesOfRunsAndData) {
  put_run("other");
  put_run("run");
  const std::string name = "gift" + kPlanted + "\nforged  completed";
  const std::string gift = "gifts/" + name;
  fs::create_directory(folder_ / "gifts");
  fs::rename(folder_ / "run", folder_ / gift);
  folder_.put(gift + "/metrics.jsonl", read(gift + "/metrics.jsonl") +
                                           "{\"kind\": \"train\", \"step\": 1, \"" + kPlantedJson +
                                           "\\nforged\": 1.5}\n");
  folder_.put("text" + name, read("text.txt"));
  ASSERT_EQ(
      command({"data", "tokenize", "text.txt", "--tokenizer", "byte", "--out", name}).exit_code, 0);
  for (const Arguments& arguments : std::vector<Arguments>{
           {"runs", "list", "gifts"},
           {"runs", "list", "none" + name},
           {"runs", "show", gift},
           {"runs", "plot", gift, "other"},
           {"runs", "plot", gift, "--metric", kPlanted + "\nforged"},
           {"runs", "compare", gift, "other"},
           {"runs", "compare", "other", gift},
           {"metrics", gift},
           {"metrics", gift, "--csv"},
           {"data", "stats", "text" + name, "--tokenizer", "byte"},
           {"data", "inspect", name},
       }) {
    SCOPED_TRACE(fmt::format("{} {}", arguments[0], arguments[1]));
    expect_escaped(arguments);
    if (arguments.back() == "--csv") continue;  // where quotes hold a line's end
    EXPECT_THAT(command(arguments).out, Not(HasSubstr("\nforged")));
  }
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

}  // namespace
}  // namespace fullbore
