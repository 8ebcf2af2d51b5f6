#include "tests/support/control_bytes_test.h"

namespace fullbore {
namespace {

TEST_F(ControlBytesTest, OfLongContexts) {
  folder_.put("niah.json", "{\"model\": \"" + kPlantedJson +
                               "\", \"lengths\": [{\"length\": 100, \"accuracy\": 0.9}]}");
  folder_.put("keys.json", "{\"" + kPlantedJson + "\": 1}");
  folder_.put("text.json", "{\"lengths\": [{\"length\": \"" + kPlantedJson + "\"}]}");
  expect_escaped({"longcontext", "usable-length", "gift" + kPlanted + ".json"});
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
