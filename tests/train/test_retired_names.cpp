#include "fullbore/train/retired_names.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/passes/pass.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/config.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/stored_config.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(RetiredNames, OfPassesLeadToPasses) {
  for (const char* retired :
       {"fold_constants", "simplify", "hoist_invariants", "merge_common", "remove_dead",
        "narrow_stacks", "narrow_storage", "gather_products", "accumulate_products", "keep_copies",
        "pack_factors", "recompute", "schedule"}) {
    const std::string_view now = renamed_value("engine.disabled_passes", retired);
    const auto is_it = [&](const Pass& pass) { return pass.name == now && pass.optional; };
    EXPECT_TRUE(std::ranges::any_of(pipeline(), is_it)) << retired << " became " << now;
    EXPECT_FALSE(
        std::ranges::any_of(pipeline(), [&](const Pass& pass) { return pass.name == retired; }))
        << retired << " is a pass";
  }
  EXPECT_EQ(renamed_value("engine.disabled_passes", "fuse"), "");
  EXPECT_EQ(renamed_value("run.name", "simplify"), "");
}

TEST(RetiredNames, AreRefusedWhereAPersonTypesThem) {
  const std::vector<std::string> typed = {"engine.disabled_passes=[fuse, simplify]"};
  EXPECT_EQ(refusal([&] { parse_config("", "x.yaml", typed); }),
            "config: command line: engine.disabled_passes: 'simplify' is called "
            "algebraic_simplification now");
  EXPECT_THAT(
      refusal([] { parse_config("engine:\n  disabled_passes: [keep_copies]\n", "x.yaml"); }),
      AllOf(HasSubstr("x.yaml:2"), HasSubstr("low_precision_weight_copies")));
}

TEST(RetiredNames, OfKeysLeadToKeys) {
  const std::pair<const char*, const char*> renamed[] = {
      {"engine.backend", "engine.device"}, {"engine.shards", "engine.parallel_microbatches"}};
  for (const auto& [retired, now] : renamed) {
    EXPECT_EQ(renamed_key(retired), now);
    EXPECT_NE(find_config_field(now), nullptr);
    EXPECT_EQ(find_config_field(retired), nullptr);
    const std::vector<std::string> typed = {fmt::format("{}=2", retired)};
    EXPECT_EQ(refusal([&] { parse_config("", "x.yaml", typed); }),
              fmt::format("config: command line: '{}' is called {} now", retired, now));
  }
  EXPECT_EQ(refusal([] { parse_config("engine:\n  shards: 2\n", "x.yaml"); }),
            "config: x.yaml:2: 'engine.shards' is called engine.parallel_microbatches now");
  EXPECT_EQ(renamed_key("engine.device"), "");
}

TEST(RetiredNames, OfValuesLeadToChoices) {
  const std::tuple<const char*, const char*, const char*> renamed[] = {
      {"data.batching", "tracks", "sequences"}, {"data.split", "tracks", "sequences"}};
  for (const auto& [key, retired, now] : renamed) {
    EXPECT_EQ(renamed_value(key, retired), now);
    const std::vector<std::string>& choices = find_config_field(key)->choices;
    EXPECT_TRUE(std::ranges::find(choices, now) != choices.end());
    EXPECT_TRUE(std::ranges::find(choices, retired) == choices.end());
    const std::vector<std::string> typed = {fmt::format("{}={}", key, retired)};
    EXPECT_EQ(refusal([&] { parse_config("", "x.yaml", typed); }),
              fmt::format("config: command line: {}: '{}' is called {} now", key, retired, now));
  }
}

TEST(RetiredNames, AreTranslatedInWhatARunWas) {
  EXPECT_EQ(renamed_identity("1502 bytes, split by tracks"), "1502 bytes, split by sequences");
  EXPECT_EQ(renamed_identity("a split=tracks, b"), "a split=sequences, b");
  for (const char* untouched :
       {"", "a split=trackss", "tracks", "split by document", "split=tracks_2 b"})
    EXPECT_EQ(renamed_identity(untouched), untouched);
}

TEST(RetiredNames, OfSourcesLeadToSources) {
  EXPECT_EQ(renamed_source("train/batch_parts.cpp"), "train/microbatches.cpp");
  EXPECT_TRUE(
      std::filesystem::exists(testing::source_folder() + "/fullbore/train/microbatches.cpp"));
  EXPECT_EQ(renamed_source("train/microbatches.cpp"), "");
}

TEST(RetiredNames, AreTranslatedInStoredGraphs) {
  const auto graph = [](const char* role, const char* bound) {
    return fmt::format(R"(graph "trips= average" {{
  %0 = input "w average \" : " {0} : f32[2]  # a = loop() {{ trips= average 
  %1, %2 = loop(%0) {{carried=1, counted=false, {1}=3}} : f32[2], f32[3,2] {{
      graph "body" {{
        %0 = input "state" local : f32[2]  # average 
        %1 = loop(%0) {{carried=1, {1}=4}} : f32[2] {{
        }}
        %2 = constant() {{ trips=7}} : f32[2]
      }}
    }}
  output " = loop( {{ trips=3" %2
}})",
                       role, bound);
  };
  EXPECT_EQ(renamed_graph(graph("average", "trips")), graph("ema", "iterations"));
  EXPECT_EQ(renamed_graph(graph("stream", "iterations")), graph("recurrent", "iterations"));
  EXPECT_EQ(renamed_graph(graph("ema", "iterations")), graph("ema", "iterations"));
  EXPECT_EQ(renamed_graph(""), "");
  EXPECT_EQ(renamed_graph("\n = loop( {"), "\n = loop( {");
}

TEST(RetiredNames, AreTranslatedWhereARunStoredThem) {
  const StoredConfig stored = parse_stored_config(
      "engine:\n  disabled_passes: [fuse, merge_common, recompute]\n", "config.resolved.yaml");
  EXPECT_THAT(stored.config.engine.disabled_passes,
              ElementsAre("fuse", "common_subexpression_elimination", "rematerialize"));
  const Config older = parse_stored_config(R"(engine: {backend: "null", shards: 2}
data: {batching: tracks, split: tracks}
)",
                                           "config.resolved.yaml")
                           .config;
  EXPECT_EQ(older.engine.device, "null");
  EXPECT_EQ(older.engine.parallel_microbatches, 2);
  EXPECT_EQ(text_keys(older).data.batching, "sequences");
  EXPECT_EQ(text_keys(older).data.split, "sequences");
  // What is typed on top of it is a person's all the same.
  const std::vector<std::string> typed = {"engine.disabled_passes=[remove_dead]"};
  EXPECT_THAT(refusal([&] { parse_stored_config("", "config.resolved.yaml", typed); }),
              HasSubstr("dead_code_elimination"));
}

}  // namespace
}  // namespace fullbore
