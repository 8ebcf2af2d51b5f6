#include "fullbore/train/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/config_schema.h"
#include "tests/support/paths.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The message with which a config is refused; "" when it is not.
std::string refusal(std::string_view yaml, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(yaml, "configs/x.yaml", overrides);
    return "";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
}

TEST(ConfigFile, AnEmptyOneGivesTheDefaults) {
  for (const char* yaml : {"", "\n", "# nothing\n", "---\n", "{}", "train:\n", "train: {}\nrun:\n"})
    EXPECT_EQ(parse_config(yaml, "x"), Config{}) << yaml;
}

TEST(ConfigFile, SetsEveryTypeOfValue) {
  const Config config = parse_config(
      "# a comment\n"
      "train: {steps: 7}\n"
      "model:\n"
      "  dropout: .25   # a comment\n"
      "  initialize_partial: true\n"
      "data:\n"
      "  path: \"a b\\u00e9.txt\"\n"
      "  cache_dir: '12'\n"
      "run: {name: 2024}\n"
      "optim: {epsilon: 1e-8, schedule: constant}\n"
      "engine:\n"
      "  disabled_passes: [a, \"b c\"]\n",
      "x");
  EXPECT_EQ(config.train.steps, 7);
  EXPECT_EQ(config.model.dropout, 0.25);
  EXPECT_TRUE(config.model.initialize_partial);
  EXPECT_EQ(config.data.path, "a b\u00E9.txt");
  EXPECT_EQ(config.data.cache_dir, "12");
  EXPECT_EQ(config.run.name, "2024");
  EXPECT_EQ(config.optim.epsilon, 1e-8);
  EXPECT_EQ(config.optim.schedule, "constant");
  EXPECT_THAT(config.engine.disabled_passes, ElementsAre("a", "b c"));
}

TEST(ConfigFile, OverridesComeAfterAndTheLastOneWins) {
  const std::vector<std::string> overrides = {"train.steps=5", "data.path=[odd] name=.txt",
                                              "train.steps=6",
                                              "run.name=", "engine.disabled_passes=[a, b,c ]"};
  const Config config = parse_config("train: {steps: 4, batch_size: 3}", "x", overrides);
  EXPECT_EQ(config.train.steps, 6);
  EXPECT_EQ(config.train.batch_size, 3);
  EXPECT_EQ(config.data.path, "[odd] name=.txt");
  EXPECT_EQ(config.run.name, "");
  EXPECT_THAT(config.engine.disabled_passes, ElementsAre("a", "b", "c"));
  for (const char* none : {"[]", "[ ]", "[,]"}) {
    const std::vector<std::string> empty = {std::string("engine.disabled_passes=") + none};
    EXPECT_TRUE(
        parse_config("engine: {disabled_passes: [x]}", "x", empty).engine.disabled_passes.empty());
  }
}

TEST(ConfigFile, ListsOfNumbersAreReadAndWritten) {
  const std::string yaml = "data: {batching: buckets, buckets: [8, 16, 64]}";
  const Config config = parse_config(yaml, "x");
  EXPECT_THAT(text_keys(config).data.buckets, ElementsAre(8, 16, 64));
  EXPECT_EQ(parse_config(config_yaml(config), "resolved"), config);
  EXPECT_EQ(parse_config(config_json(config), "config.json"), config);
  const std::vector<std::string> overrides = {"data.buckets=[4,32 ]"};
  EXPECT_THAT(text_keys(parse_config(yaml, "x", overrides)).data.buckets, ElementsAre(4, 32));
  const std::vector<std::string> none = {"data.buckets=[]"};
  EXPECT_TRUE(text_keys(parse_config(yaml, "x", none)).data.buckets.empty());
}

TEST(ConfigFile, ParameterGroupsAreMapsOrTexts) {
  const std::vector<std::string> expected = {"match=*.bias weight_decay=0", "match=head.*"};
  const Config config = parse_config(
      "optim:\n"
      "  groups:\n"
      "    - {match: \"*.bias\", weight_decay: 0}\n"
      "    - match: head.*\n"
      "train: {steps: 3}\n",
      "x");
  EXPECT_EQ(config.optim.groups, expected);
  EXPECT_EQ(config.train.steps, 3);
  EXPECT_EQ(parse_config(config_yaml(config), "resolved"), config);
  const std::vector<std::string> overrides = {
      "optim.groups=[match=*.bias weight_decay=0, match=head.*]"};
  EXPECT_EQ(parse_config("", "x", overrides).optim.groups, expected);
}

TEST(ConfigFile, ListsOfMapsAreReadOnTheCommandLine) {
  const auto groups = [](const std::string& text) {
    const std::vector<std::string> overrides = {"optim.groups=" + text};
    return parse_config("", "x", overrides).optim.groups;
  };
  const std::vector<std::string> expected = {"match=*.bias weight_decay=0", "match=head.*"};
  EXPECT_EQ(groups("[{match: *.bias, weight_decay: 0}, {match: head.*}]"), expected);
  EXPECT_EQ(groups("[{match: \"*.bias\",weight_decay: 0},{'match': head.*}]"), expected);
  EXPECT_EQ(groups("[ match=*.bias weight_decay=0 , \"match=head.*\" ]"), expected);
  EXPECT_TRUE(groups("[]").empty());
  const std::vector<std::string> modules = {"engine.fp32_modules=[\"layers.0.*\", 'a,b', it's]"};
  EXPECT_THAT(parse_config("", "x", modules).engine.fp32_modules,
              ElementsAre("layers.0.*", "a,b", "it's"));

  const auto refused = [&](const std::string& text) -> std::string {
    try {
      (void)groups(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refused("[{match: a, weight_decay: 0]"),
              HasSubstr("command line: optim.groups: '{match: a, weight_decay: 0' misses its "
                        "closing '}'"));
  EXPECT_THAT(refused("[\"match=a]"), HasSubstr("misses its closing quote"));
  EXPECT_THAT(refused("[{match a}]"), HasSubstr("'match a' in '{match a}': 'key: value'"));
  EXPECT_THAT(refused("[{match: a b}]"), HasSubstr("without blanks"));
  EXPECT_THAT(refused("[{matc: a}]"), HasSubstr("Did you mean 'match'?"));
  EXPECT_THAT(refused("{match: a}"), HasSubstr("a list"));
}

TEST(ConfigFile, TheFirstExampleOfTheManual) {
  EXPECT_EQ(refusal("run:\n  seed: 1\n\n\ntrain:\n  steps: 3\n  batchsize: 2\n"),
            "config: configs/x.yaml:7: unknown key 'train.batchsize'. Did you mean "
            "'train.batch_size'?");
}

struct Refused {
  const char* yaml;
  const char* message;
};

const Refused kRefused[] = {
    // names
    {"trian: {steps: 1}", ":1: unknown section 'trian'. Did you mean 'train'?"},
    {"\nsteps: 1", ":2: 'steps' is a section: its keys go below it, indented; a value stands"},
    {"train: {zzzzzz: 1}", ":1: unknown key 'train.zzzzzz'."},
    {"train:\n  steps: 1\n  steps: 2", ":3: 'train.steps' occurs twice; it stands in line 2"},
    {"train: {steps: 1}\nrun: {seed: 1}\ntrain: {steps: 1}",
     ":3: section 'train' occurs twice; it stands in line 1 already"},
    // types
    {"train: {steps: many}", ":1: train.steps is 'many'; a whole number in [1, 1000000000] was"},
    {"train: {steps: 1.5}", ":1: train.steps is '1.5'; a whole number"},
    {"train: {steps: 1e3}", ":1: train.steps is '1e3'; a whole number"},
    {"train: {steps: \"12\"}", ":1: train.steps is the text \"12\"; a whole number"},
    {"train: {steps: [1]}", ":1: train.steps is a list; a whole number"},
    {"train: {steps: 99999999999999999999}", "train.steps is '99999999999999999999'; a whole"},
    {"train: {steps: 1 2}", "train.steps is '1 2'; a whole number"},
    {"train:\n  steps:\n", ":2: 'train.steps' has no value; leave the key out"},
    {"train: {steps: ~}", "'train.steps' has no value"},
    {"model: {initialize_partial: yes}",
     ":1: model.initialize_partial is 'yes'; true or false was expected."},
    {"model: {initialize_partial: 'true'}",
     "model.initialize_partial is the text \"true\"; true or false"},
    {"optim: {learning_rate: fast}", "optim.learning_rate is 'fast'; a number in [0, 1e+15]"},
    {"optim: {schedule: cosin}",
     "optim.schedule is 'cosin'; one of cosine, constant, linear, warmup_stable_decay, one_cycle, "
     "plateau was "
     "expected. Did you mean 'cosine'?"},
    {"engine: {device: gpu}",
     "engine.device is 'gpu'; one of auto, card, card_of_200_mib, cpu, cuda, null, reference was "
     "expected."},
    {"engine: {precision: bf8}",
     "engine.precision is 'bf8'; one of fp32, tf32, bf16, fp16 was expected. Did you mean 'bf16'?"},
    {"engine: {precision: fp8}",
     "engine.precision is fp8; 8-bit floats are of some matmuls alone, on cards: engine.fp8=true"},
    {"engine: {precision: fp16, fp8: true}",
     "engine.fp8 true (configs/x.yaml:1) needs precision bf16 or fp32, not engine.precision fp16"},
    {"engine: {row_invariant: true, fp8: true}",
     "engine.fp8 true (configs/x.yaml:1) does not go with engine.row_invariant true"},
    {"engine: {loss_scale: 0}", "engine.loss_scale is '0'"},
    {"engine: {disabled_passes: fuse}", "disabled_passes is 'fuse'; a list such as [a, b] was"},
    {"data: {path: [a]}", "data.path is a list; a text was expected"},
    {"data: {path: \"a\\0b\"}", "data.path is the text"},
    // ranges
    {"train: {batch_size: -4}", ":1: train.batch_size is '-4'; a whole number in [1, 1048576]"},
    {"train: {batch_size: 0}", "train.batch_size is '0'; a whole number in [1, 1048576]"},
    {"model: {width: -128}", "model.width is '-128'; a whole number in [1, 65536]"},
    {"model: {dropout: 1}", "model.dropout is '1'; a number in [0, 1)"},
    {"model: {dropout: -0.1}", "model.dropout is '-0.1'; a number in [0, 1)"},
    {"data: {validation_fraction: 1.0}", "data.validation_fraction is '1.0'; a number in [0, 1)"},
    {"optim: {epsilon: 0}", "optim.epsilon is '0'; a number in [1e-30, 1e+15]"},
    {"optim: {learning_rate: nan}", "optim.learning_rate is 'nan'; a number in [0, 1e+15]"},
    {"optim: {learning_rate: inf}", "optim.learning_rate is 'inf'; a number"},
    {"optim: {learning_rate: 1e999}", "optim.learning_rate is '1e999'; a number"},
    // together
    {"model:\n  heads: 3",
     "config: model.width 128 (default) is not a multiple of model.heads 3 (configs/x.yaml:2)"},
    {"optim: {learning_rate: 1e-5}",
     "optim.minimum_learning_rate 0.0001 (default) is above optim.learning_rate 1e-05"},
    {"optim:\n  noise_scale: true\ntrain:\n  batch_size: 3",
     "optim.noise_scale true (configs/x.yaml:2) needs an even batch, and train.batch_size 3"},
    {"train: {evaluate: ema}",
     "train.evaluate ema (configs/x.yaml:1) has no moving average to look at, for optim.ema_decay "
     "0"},
    {"data: {batching: bucket}",
     "data.batching is 'bucket'; one of windows, packed, buckets, sequences"},
    {"data: {buckets: [8]}",
     "data.buckets [8] (configs/x.yaml:1) means nothing with data.batching windows (default)"},
    {"data: {split: sequences}",
     "data.split sequences (configs/x.yaml:1) is of batches of sequences, not of data.batching "
     "windows "
     "(default)"},
    {"engine: {accumulate: 2, parallel_microbatches: 3}\ntrain: {batch_size: 8}",
     "train.batch_size 8 (configs/x.yaml:2) is not a multiple of engine.accumulate times "
     "engine.parallel_microbatches 3 (configs/x.yaml:1)"},
    {"engine: {parallel_microbatches: 2}\noptim: {noise_scale: true}\ntrain: {batch_size: 8}",
     "optim.noise_scale true (configs/x.yaml:2) does not go with engine.parallel_microbatches 2 "
     "(configs/x.yaml:1)"},
    {"data: {tokens_per_batch: 8, batching: packed}",
     "data.tokens_per_batch 8 (configs/x.yaml:1) means nothing with data.batching packed"},
    {"data: {batching: buckets, buckets: [8, 8]}",
     "data.buckets [8, 8] (configs/x.yaml:1) are not "
     "ascending"},
    {"data: {batching: buckets, buckets: [8, 65]}",
     "data.buckets [8, 65] (configs/x.yaml:1) go beyond model.context 64 (default)"},
    {"data: {batching: buckets, buckets: [8, 16], tokens_per_batch: 15}",
     "data.tokens_per_batch 15 (configs/x.yaml:1) is less than the longest sequence, of "
     "data.buckets"},
    {"data: {batching: buckets, tokens_per_batch: 63}",
     "is less than the longest sequence, of model.context 64 (default)"},
    {"data: {batching: buckets, tokens_per_batch: 64}\ntrain: {batch_size: auto}",
     "config: train.batch_size auto (configs/x.yaml:2) cannot be solved, for data.tokens_per_batch "
     "64 (configs/x.yaml:1) settles how large a batch is: set data.tokens_per_batch=0"},
    {"data: {buckets: [8, x]}",
     "data.buckets is a list; a list of whole numbers in [1, 1048576] was expected"},
    {"data: {buckets: [1.5]}", "data.buckets is a list; a list of whole numbers"},
    {"data: {buckets: [0]}", "data.buckets is a list; a list of whole numbers"},
    {"data: {buckets: 8}", "data.buckets is '8'; a list of whole numbers"},
    {"data: {batching: packed}\noptim: {noise_scale: true}",
     "optim.noise_scale true (configs/x.yaml:2) needs halves of a batch that count alike, not "
     "data.batching packed (configs/x.yaml:1)"},
    // parameter groups
    {"optim:\n  groups:\n    - {match: a, decay: 1}",
     "config: configs/x.yaml:2: optim.groups: 'match=a decay=1': unknown key 'decay'."},
    {"optim: {groups: [{weight_decay: 1}]}", "optim.groups: 'weight_decay=1': match is missing"},
    {"optim: {groups: [x]}", "optim.groups: 'x': 'x' is no key=value"},
    {"optim: {groups: [{match: 'a b'}]}", ":1: 'a b': a value of 'optim.groups' is empty or has a"},
    {"optim: {groups: [{'a=b': c}]}", ":1: 'a=b': a key of 'optim.groups' is empty or has a blank"},
    {"optim: {groups: [{match: ''}]}", ":1: '': a value of 'optim.groups' is empty"},
    {"optim: {groups: [{match: {a: b}}]}", "nothing goes deeper than 'optim.groups'"},
    {"optim: {groups: [{match: [a]}]}", ":1: a list can only be the value of a key"},
    {"optim: {groups: [{match: ~}]}", "'optim.groups' has no value"},
    {"optim: {groups: {match: a}}", "nothing goes deeper than 'optim.groups'"},
    // YAML
    {"data: {path: [", ":1: malformed YAML: "},
    {"train: {", "malformed YAML: "},
    {"train:\n  steps: \"1", ": malformed YAML: "},
    {"train:\n\tsteps: 1", ":2: indented by a tab; YAML wants spaces"},
    {"train:\n  \tsteps: 1", ":2: indented by a tab"},
    {"train:\n  steps: 1\n bias: 2", ":3: malformed YAML: "},
    {"}", "malformed YAML: "},
    {"run: {}\n%YAML 9", ":2: directives ('%name') have no meaning in a config"},
    {"just words", ":1: sections such as 'train:' were expected, not one value"},
    {"- train", ":1: a list can only be the value of a key"},
    {"[train]", ":1: a list can only be the value of a key"},
    {"train: [1]", "'train' is a section: its keys go below it, indented; a list stands there"},
    {"train: {steps: {a: 1}}", "nothing goes deeper than 'train.steps'"},
    {"train: {steps: [[1]]}", ":1: a list can only be the value of a key"},
    {"train: {steps: [{a: 1}]}", "nothing goes deeper than 'train.steps'"},
    {"? [a]\n: b", "a list can only be the value of a key"},
    {"? {a: b}\n: c", "nothing goes deeper than ''"},
    {"~: {steps: 1}", "a key is missing before the ':'"},
    {"train: {~: 1}", "a key is missing before the ':'"},
    {"'': {steps: 1}", "a section's name is empty"},
    {"train: {'': 1}", "a key is empty"},
    {"train: &a {steps: 1}", ":1: anchors ('&name') have no meaning in a config"},
    {"train: {steps: &a 1}", "anchors ('&name')"},
    {"train: {steps: *a}", "config: configs/x.yaml:1: "},
    {"train: {steps: !!int 1}", "the tag 'tag:yaml.org,2002:int' has no meaning in a config"},
    {"train: !x {steps: 1}", "the tag '!x' has no meaning in a config"},
    {"train: {steps: 1}\n---\nrun: {seed: 1}", ":2: a second document begins"},
    {"run: {}\ndata: {path: \xC0\xAF}", ":2: not UTF-8 text: overlong form of U+002F"},
};

TEST(ConfigFile, RefusesWhatIsWrongWithLineAndExpectation) {
  for (const auto& [yaml, message] : kRefused) {
    EXPECT_THAT(refusal(yaml), HasSubstr(message)) << yaml;
    EXPECT_THAT(refusal(yaml), StartsWith("config: ")) << yaml;
  }
  EXPECT_THAT(refusal(std::string_view("run: {}\n\0", 9)), HasSubstr(":2: a zero byte"));
}

TEST(ConfigFile, WrongOverridesAreRefused) {
  EXPECT_EQ(refusal("", {"train.step=3"}),
            "config: command line: unknown key 'train.step'. Did you mean 'train.steps'?");
  EXPECT_EQ(refusal("", {"train.steps"}),
            "config: command line: 'train.steps' is no override; section.key=value was expected");
  EXPECT_THAT(refusal("", {"=3"}), HasSubstr("'=3' is no override"));
  EXPECT_THAT(refusal("", {"train.steps="}), HasSubstr("train.steps is ''; a whole number"));
  EXPECT_THAT(refusal("", {"train.steps=-1"}), HasSubstr("train.steps is '-1'; a whole number"));
  EXPECT_THAT(refusal("", {"data.path=\xFF"}), HasSubstr("data.path is"));
  EXPECT_THAT(refusal("", {"model.width=100", "model.heads=8"}),
              HasSubstr("model.width 100 (command line) is not a multiple of model.heads 8"));
}

TEST(ConfigFile, HostileFilesCostNoMoreThanTheyWeigh) {
  // A billion laughs: refused at the first anchor.
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    laughs += std::string(1, c) + ": &" + c + " [";
    for (int i = 0; i < 9; ++i)
      laughs += std::string(i > 0 ? ", " : "") + "*" + static_cast<char>(c - 1);
    laughs += "]\n";
  }
  EXPECT_THAT(refusal(laughs), HasSubstr(":1: anchors"));
  EXPECT_FALSE(refusal("run: {name: " + std::string(20'000, '[')).empty());
  EXPECT_FALSE(refusal("run: {name: " + std::string(20'000, '{')).empty());
  EXPECT_FALSE(refusal(std::string(20'000, '[')).empty());
  EXPECT_THAT(refusal(std::string(500'000, '[')), HasSubstr("500000 opening brackets"));
  std::string indented;
  for (size_t depth = 0; depth < 500; ++depth) indented += std::string(depth, ' ') + "a:\n";
  EXPECT_FALSE(refusal(indented).empty());
  EXPECT_FALSE(refusal(std::string(5'000, '-') + " x").empty());
  EXPECT_THAT(refusal(std::string(size_t{2} << 20, '#')), HasSubstr("too many for a config"));
}

TEST(ConfigFile, TheResolvedConfigReproducesItself) {
  PhiloxStream random(21);
  const std::string pieces[] = {"a",      " ",          "#",    ":",    "'",     "\"", "\\",
                                "\n",     "[",          "{",    "&",    "*",     "!",  "\u00E9",
                                "\u2028", "\U0001F600", "\t",   "-",    "\x7F",  "%",  "1",
                                "~",      "\x01",       "null", "true", "\u0085"};
  for (int i = 0; i < 500; ++i) {
    Config config;
    const auto text = [&] {
      std::string result;
      for (uint64_t n = random.below(6); n > 0; --n)
        result += pieces[random.below(std::size(pieces))];
      return result;
    };
    config.data.path = text();
    text_keys(config).data.field = text();  // not run.name, which is that of a folder
    for (uint64_t n = random.below(3); n > 0; --n) config.engine.disabled_passes.push_back(text());
    config.optim.epsilon = std::exp(random.uniform(-69, 20));
    config.model.dropout = random.uniform();
    config.run.seed = static_cast<int64_t>(random.below(uint64_t{1} << 53));
    const std::string yaml = config_yaml(config);
    ASSERT_EQ(parse_config(yaml, "resolved"), config) << yaml;
    ASSERT_EQ(config_yaml(parse_config(yaml, "resolved")), yaml);
    const std::string json = config_json(config);
    ASSERT_EQ(parse_config(json, "config.json"), config) << json;
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
  }
}

TEST(ConfigFile, TruncationAndNoiseAreRefusedOrRead) {
  const std::string yaml = "# All keys of the default model.\n" + config_yaml(Config());
  int refused = 0;
  for (size_t size = 0; size < yaml.size(); ++size)
    refused += !refusal(yaml.substr(0, size)).empty();
  EXPECT_GT(refused, 0);
  PhiloxStream random(5);
  for (int i = 0; i < 1000; ++i) {
    std::string noisy = yaml;
    for (uint64_t edits = 1 + random.below(5); edits > 0; --edits) {
      const size_t at = random.below(noisy.size());
      if (random.below(2) == 0)
        noisy[at] ^= static_cast<char>(1U << random.below(8));
      else
        noisy.insert(at, 1, "[]{}:-#&*!|>'\"%@`,?\n\t "[random.below(22)]);
    }
    refusal(noisy);  // anything but a crash, a hang, or another exception
  }
}

TEST(ConfigFile, UnreadableFilesAreUsageErrors) {
  const testing::ScratchFolder folder;
  const auto message = [](const std::string& path) {
    try {
      load_config(path);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_THAT(message(folder / "none.yaml"),
              HasSubstr("config: cannot open " + (folder / "none.yaml") + ": No such file"));
  EXPECT_THAT(message(folder.path()), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(message(folder.put("x.yaml", "train:\n  steps: x\n")),
              HasSubstr("config: " + (folder / "x.yaml") + ":2: train.steps is 'x'"));
}

TEST(DefaultModel, IsClaimedOrTheOnlyOne) {
  const ConfigKeys common{.name = "common"};
  const ConfigKeys a{.name = "a", .models = {"apple", "pear"}};
  const ConfigKeys b{.name = "b", .models = {"bean"}};
  ConfigKeys claims = b;
  claims.is_default = true;
  EXPECT_EQ(default_model_of({}), "");
  EXPECT_EQ(default_model_of({common, b}), "bean");
  EXPECT_EQ(default_model_of({common, a, b}), "");
  EXPECT_EQ(default_model_of({common, a}), "") << "which of its two?";
  EXPECT_EQ(default_model_of({common, a, claims}), "bean");
}

}  // namespace
}  // namespace fullbore
