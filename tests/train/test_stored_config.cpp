// What a configuration that was found in a run or a checkpoint may set: a list, and nothing by default.
#include "fullbore/train/stored_config.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A new key that fails here is to be judged: what can a stranger do with it? Then docs/security.md.
TEST(StoredConfigTest, EveryKeyIsJudged) {
  std::set<std::string> paths, ignored;
  for (const ConfigField& field : config_fields()) {
    if (stored_key(field) == StoredKey::path) paths.insert(field.key);
    if (stored_key(field) == StoredKey::ignored) ignored.insert(field.key);
  }
  EXPECT_THAT(paths, ElementsAre("data.path", "data.tokenizer", "model.initialize_from"));
  EXPECT_THAT(ignored, ElementsAre("data.cache_dir", "engine.cache_dir", "log.mlflow",
                                   "log.mlflow_experiment", "log.prometheus_port", "run.dir",
                                   "train.frozen_from"));
}

TEST(StoredConfigTest, WhatIsIgnoredIsToldAndTheRestTaken) {
  const StoredConfig stored = parse_stored_config(
      "run: {dir: /elsewhere, seed: 5}\n"
      "data: {cache_dir: /planted, path: text.txt}\n"
      "engine: {cache_dir: /planted, threads: 3, cache: false}\n"
      "log: {prometheus_port: 80, mlflow: \"http://elsewhere\"}\n",
      "gift");
  Config expected;
  expected.run.seed = 5;
  expected.data.path = "text.txt";
  expected.engine.threads = 3;
  expected.engine.cache = false;
  EXPECT_EQ(stored.config, expected);
  EXPECT_THAT(stored.notices, ElementsAre(HasSubstr("gift:2: data.cache_dir=/planted is ignored"),
                                          HasSubstr("gift:3: engine.cache_dir=/planted"),
                                          HasSubstr("gift:4: log.prometheus_port=80"),
                                          HasSubstr("gift:4: log.mlflow=\"http://elsewhere\"")));
}

TEST(StoredConfigTest, WhatTheUserSaysCounts) {
  const std::vector<std::string> own = {"engine.cache_dir=mine", "log.prometheus_port=9000"};
  const StoredConfig stored = parse_stored_config("engine: {cache_dir: /planted}\n", "gift", own);
  EXPECT_EQ(stored.config.engine.cache_dir, "mine");
  EXPECT_EQ(stored.config.log.prometheus_port, 9000);
}

TEST(StoredConfigTest, WhatIsThereButSaysNothingIsNotMentioned) {
  const std::string all = config_yaml(Config());
  EXPECT_THAT(parse_stored_config(all, "own").notices, IsEmpty());
  EXPECT_EQ(parse_stored_config(all, "own").config, Config());
}

TEST(StoredConfigTest, MoreThanTheMachineHasIsIgnored) {
  const StoredConfig greedy =
      parse_stored_config("engine: {threads: 1000, memory_budget: 900000GiB}\n", "gift");
  EXPECT_EQ(greedy.config, Config());
  EXPECT_EQ(greedy.notices.size(), 2U);
  const StoredConfig modest =
      parse_stored_config("engine: {threads: 64, memory_budget: 64MiB}\n", "own");
  EXPECT_EQ(modest.config.engine.threads, 64);
  EXPECT_EQ(modest.config.engine.memory_budget, "64MiB");
  EXPECT_THAT(modest.notices, IsEmpty());
}

TEST(StoredConfigTest, AFileIsStoredByItsName) {
  const testing::ScratchFolder folder;
  const std::string yaml = "engine: {cache_dir: mine}\n";
  for (const char* name : {"config.resolved.yaml", "config.given.yaml", "config.json"})
    EXPECT_EQ(load_named_config(folder.put(name, yaml)).config.engine.cache_dir, "") << name;
  EXPECT_EQ(load_named_config(folder.put("job.yaml", yaml)).config.engine.cache_dir, "mine");
}

TEST(StoredConfigTest, ANameOfARunIsThatOfOneFolder) {
  const auto refused = [](const std::string& name) {
    const std::vector<std::string> own = {"run.name=" + name};
    try {
      parse_config("", "x", own);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const char* name : {"small-2", "a b", "caf\u00e9", "-x"}) EXPECT_EQ(refused(name), "");
  EXPECT_THAT(refused("../../x"), HasSubstr("run.name"));
  EXPECT_THAT(refused("a/b"), HasSubstr("holds a '/'"));
  EXPECT_THAT(refused("/abs"), HasSubstr("holds a '/'"));
  EXPECT_THAT(refused(".."), HasSubstr("begins with a dot"));
  EXPECT_THAT(refused(".hidden"), HasSubstr("begins with a dot"));
  EXPECT_THAT(refused("a\nb"), HasSubstr("holds control characters"));
  EXPECT_THAT(refused("a\x1b[2J"), HasSubstr("holds control characters"));
  EXPECT_THAT(refused(std::string(101, 'a')), HasSubstr("longer than 100 bytes"));
}

}  // namespace
}  // namespace fullbore
