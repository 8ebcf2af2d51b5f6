#include "fullbore/train/retired_names.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/config.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::function<void()>& read) {
  try {
    read();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(RetiredNames, OfPassesLeadToPasses) {
  for (const char* retired : {"fold_constants", "simplify", "hoist_invariants", "merge_common",
                              "remove_dead", "narrow_stacks", "narrow_storage", "gather_products",
                              "accumulate_products", "keep_copies", "pack_factors", "recompute"}) {
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

TEST(RetiredNames, AreTranslatedWhereARunStoredThem) {
  const StoredConfig stored = parse_stored_config(
      "engine:\n  disabled_passes: [fuse, merge_common, recompute]\n", "config.resolved.yaml");
  EXPECT_THAT(stored.config.engine.disabled_passes,
              ElementsAre("fuse", "common_subexpression_elimination", "rematerialize"));
  // What is typed on top of it is a person's all the same.
  const std::vector<std::string> typed = {"engine.disabled_passes=[remove_dead]"};
  EXPECT_THAT(refusal([&] { parse_stored_config("", "config.resolved.yaml", typed); }),
              HasSubstr("dead_code_elimination"));
}

}  // namespace
}  // namespace fullbore
