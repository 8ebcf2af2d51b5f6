// Rows of a prompt and its completions.
#include "workloads/chess/completion_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/text/text_keys.h"
#include "workloads/chess/policy_step.h"

namespace fullbore::chess {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Tokens = std::vector<int32_t>;

TEST(CompletionRows, HaveThePromptOnceAndEachCompletionWithoutItsEnd) {
  CompletionRow row(Tokens{7, 8, 9});
  row.add(Tokens{1, 2, 0}, true);
  row.add(Tokens{0}, true);
  row.add(Tokens{3, 0}, true);
  EXPECT_THAT(row.tokens(), ElementsAre(7, 8, 9, 1, 2, 3));
  EXPECT_THAT(row.branches(), ElementsAre(0, 0, 0, 1, 1, 3));
  EXPECT_THAT(row.positions(), ElementsAre(0, 1, 2, 3, 4, 3));
  // The first token of each follows the prompt's last.
  EXPECT_THAT(row.before(0), ElementsAre(2, 3, 4));
  EXPECT_THAT(row.before(1), ElementsAre(2));
  EXPECT_THAT(row.before(2), ElementsAre(2, 5));
}

TEST(CompletionRows, WhatDoesNotCountTakesNoRoom) {
  CompletionRow row(Tokens{7, 8});
  row.add(Tokens{1, 2}, false);
  row.add(Tokens{3, 4}, true);
  EXPECT_THAT(row.tokens(), ElementsAre(7, 8, 3));
  EXPECT_THAT(row.branches(), ElementsAre(0, 0, 2));
  EXPECT_THAT(row.before(0), IsEmpty());
  EXPECT_THAT(row.before(1), ElementsAre(1, 2));
}

/// Of a model that reads them.
Config config_of_groups() {
  Config config;
  config.model.name = "tiny_decoder";
  chess_keys(config).rollout = {.prompts = 4, .samples = 3, .policy_tokens = 21};
  chess_keys(config).rollout.arbiter_tokens = 11;
  TextKeys& keys = config.get<TextKeys>();
  keys.model.context = 128;
  keys.data.buckets = {64, 100};
  keys.data.tokenizer = "byte";
  return config;
}

TEST(PolicyLayout, IsOfGroupsWhereTheModelReadsThem) {
  Config config = config_of_groups();
  const PolicyLayout groups = policy_layout(config);
  EXPECT_TRUE(groups.shares_prompts());
  EXPECT_EQ(groups.rows, 4);
  EXPECT_EQ(groups.completions, 3);
  EXPECT_EQ(groups.longest, 21);
  // One completion with its prompt is 100 at most, and the two others bring 20 each.
  EXPECT_EQ(groups.lengths.back(), 140);
  EXPECT_TRUE(std::ranges::is_sorted(groups.lengths, std::ranges::less_equal())) << "ascending";
  EXPECT_EQ(policy_shapes(config).size(), groups.lengths.size());

  chess_keys(config).grpo.share_prompts = false;
  const PolicyLayout alone = policy_layout(config);
  EXPECT_FALSE(alone.shares_prompts());
  EXPECT_EQ(alone.rows, 12);
  EXPECT_THAT(alone.lengths, ElementsAre(64, 100));
  EXPECT_EQ(policy_field(policy_shapes(config)[0], PolicyField::branches), -1);
}

}  // namespace
}  // namespace fullbore::chess
