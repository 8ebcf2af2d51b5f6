#include "workloads/chess/chess_keys.h"

#include <gtest/gtest.h>

#include "fullbore/train/config_schema.h"
#include "fullbore/train/stored_config.h"
#include "workloads/chess/policy_step.h"

namespace fullbore::chess {
namespace {

StoredKey judged(const std::string& key) {
  for (const ConfigField& field : config_fields())
    if (field.key == key) return stored_key(field);
  ADD_FAILURE() << key;
  return StoredKey::taken;
}

// A run folder that somebody else made starts no program of his choice.
TEST(ChessKeys, OfARunFolderNameNoProgram) {
  EXPECT_EQ(judged("chess.engine"), StoredKey::ignored);
  EXPECT_EQ(judged("chess.truth"), StoredKey::taken);
  EXPECT_EQ(judged("reward.truth"), StoredKey::taken);
  EXPECT_EQ(judged("grpo.clip_low"), StoredKey::taken);
}

TEST(ChessKeys, NameTheAlgorithms) {
  using Aggregation = PolicyLossOptions::Aggregation;
  using Ratio = PolicyLossOptions::Ratio;
  const auto options = [](const std::string& algorithm) {
    Config config;
    chess_keys(config).grpo.algorithm = algorithm;
    return policy_options(config);
  };
  const PolicyOptions grpo = options("grpo");
  EXPECT_EQ(grpo.advantage, Advantage::sample);
  EXPECT_EQ(grpo.loss.aggregation, Aggregation::sequences);
  EXPECT_EQ(grpo.loss.ratio, Ratio::token);
  EXPECT_EQ(grpo.loss.clip_high, 0.2);
  EXPECT_FALSE(grpo.resamples || grpo.masks_overlong);
  EXPECT_EQ(options("gspo").loss.ratio, Ratio::sequence);
  const PolicyOptions dapo = options("dapo");
  EXPECT_EQ(dapo.loss.aggregation, Aggregation::tokens);
  EXPECT_EQ(dapo.loss.clip_high, 0.28);
  EXPECT_TRUE(dapo.resamples && dapo.masks_overlong);
  EXPECT_EQ(options("dr_grpo").loss.aggregation, Aggregation::fixed);
  EXPECT_EQ(options("dr_grpo").advantage, Advantage::centred);
  EXPECT_EQ(options("rloo").advantage, Advantage::leave_one);
  // What is set by hand counts.
  Config config;
  chess_keys(config).grpo.algorithm = "dapo";
  chess_keys(config).grpo.clip_high = 0.3;
  chess_keys(config).grpo.groups = "keep";
  EXPECT_EQ(policy_options(config).loss.clip_high, 0.3);
  EXPECT_FALSE(policy_options(config).resamples);
}

TEST(ChessKeys, CompletionsHaveTheirKeysAndValuesInThePrecisionOfTheRun) {
  Config config;
  EXPECT_EQ(policy_rollout_sizes(config, 257).pool_dtype, DType::f32);
  config.engine.precision = "bf16";
  EXPECT_EQ(policy_rollout_sizes(config, 257).pool_dtype, DType::bf16);
}

}  // namespace
}  // namespace fullbore::chess
