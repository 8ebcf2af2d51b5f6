#include "fullbore/train/settled_config.h"

#include <gtest/gtest.h>

#include "fullbore/base/error.h"
#include "fullbore/base/seal.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/train/run_directory.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

Config config_of(int64_t batch, int64_t parts, const std::string& recompute = "off") {
  Config config;
  config.train.batch_size = batch;
  config.engine.accumulate = parts;
  config.engine.recompute = recompute;
  return config;
}

TEST(SettledConfig, WhatIsAutoStaysAsTheRunHasIt) {
  const SettledConfig run{config_of(0, 1), config_of(96, 1)};
  const ResumedConfig resumed = keep_settled(config_of(0, 1), run);
  EXPECT_EQ(resumed.config, run.resolved);
  EXPECT_EQ(resumed.given, run.given);
  ASSERT_EQ(resumed.decisions.size(), 1U);
  EXPECT_EQ(resumed.decisions[0], "train.batch_size=96: as the run has been so far, not auto");

  const SettledConfig parts{config_of(24, 0), config_of(24, 3)};
  EXPECT_EQ(keep_settled(config_of(24, 0), parts).config, parts.resolved);
  // Auto now, a number before: the run has it all the same.
  EXPECT_EQ(keep_settled(config_of(0, 1), {config_of(8, 1), config_of(8, 1)}).config,
            config_of(8, 1));
}

// Another number of workers would cut the batch otherwise, and sum in another order.
TEST(SettledConfig, ParallelMicrobatchesStayWithoutAWord) {
  Config resolved = config_of(24, 1);
  resolved.engine.parallel_microbatches = 4;
  const SettledConfig run{resolved, resolved};
  const ResumedConfig resumed = keep_settled(config_of(24, 1), run);
  EXPECT_EQ(resumed.config, resolved);
  EXPECT_TRUE(resumed.decisions.empty());
  EXPECT_FALSE(differs_in_settled(config_of(24, 1), resolved));
  Config other = config_of(24, 1);
  other.engine.parallel_microbatches = 2;
  EXPECT_EQ(keep_settled(other, run).config.engine.parallel_microbatches, 2) << "asked for";
  EXPECT_EQ(keep_settled(config_of(18, 1), run).config.engine.parallel_microbatches, 0)
      << "4 do not divide 18";
}

TEST(SettledConfig, WhatDegradedStaysSo) {
  const SettledConfig run{config_of(24, 1), config_of(24, 4, "auto")};
  const ResumedConfig resumed = keep_settled(run.given, run);
  EXPECT_EQ(resumed.config, run.resolved);
  EXPECT_EQ(resumed.given, run.given);
  EXPECT_EQ(resumed.decisions.size(), 2U);
  // The run directory in place of the configuration: nothing to tell, and what was given is not lost.
  const ResumedConfig itself = keep_settled(run.resolved, run);
  EXPECT_EQ(itself.config, run.resolved);
  EXPECT_EQ(itself.given, run.given);
  EXPECT_TRUE(itself.decisions.empty());
}

TEST(SettledConfig, WhatTheUserChangesIsChanged) {
  const SettledConfig run{config_of(0, 1), config_of(96, 2)};
  ResumedConfig resumed = keep_settled(config_of(32, 1), run);
  EXPECT_EQ(resumed.config, config_of(32, 2));
  EXPECT_EQ(resumed.given, config_of(32, 1));
  resumed = keep_settled(config_of(0, 8), run);
  EXPECT_EQ(resumed.config, config_of(96, 8));
  EXPECT_EQ(resumed.given, config_of(0, 8));
  EXPECT_EQ(resumed.decisions.size(), 1U);
  // All else is none of memory's business.
  Config other = config_of(0, 1);
  other.train.steps = 7;
  other.engine.memory_budget = "3GiB";
  resumed = keep_settled(other, run);
  EXPECT_EQ(resumed.config.train.steps, 7);
  EXPECT_EQ(resumed.config.engine.memory_budget, "3GiB");
  EXPECT_EQ(resumed.config.train.batch_size, 96);
}

TEST(SettledConfig, PartsThatDoNotDivideTheNewBatchAreOpenAgain) {
  const SettledConfig run{config_of(24, 0), config_of(24, 3)};
  const ResumedConfig resumed = keep_settled(config_of(32, 0), run);
  EXPECT_EQ(resumed.config, config_of(32, 0));
  EXPECT_EQ(resumed.given, config_of(32, 0));
}

// It is read again when the run is resumed again.
TEST(SettledConfig, WhatIsRecordedAsGivenGoesTogether) {
  const SettledConfig parts{config_of(12, 3), config_of(12, 4)};
  EXPECT_EQ(keep_settled(config_of(32, 4), parts).given, config_of(32, 4)) << "not 32 in 3 parts";
  const SettledConfig batch{config_of(0, 1), config_of(96, 1)};
  Config by_tokens = config_of(96, 1);
  text_keys(by_tokens).data.batching = "buckets";
  text_keys(by_tokens).data.tokens_per_batch = 128;
  EXPECT_EQ(keep_settled(by_tokens, batch).given, by_tokens);
}

TEST(SettledConfig, ABatchThatDoesNotGoWithWhatIsChangedIsRefused) {
  const SettledConfig run{config_of(0, 1), config_of(81, 1)};
  Config even = config_of(0, 1);
  even.optim.noise_scale = true;
  for (const Config& changed : {config_of(0, 2), even}) {
    try {
      keep_settled(changed, run);
      ADD_FAILURE() << "not refused";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("train.batch_size=81, which the run has been made"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(SettledConfig, IsReadFromARun) {
  const testing::ScratchFolder folder;
  EXPECT_FALSE(read_settled(folder.path()).has_value());
  Config settled = config_of(96, 2);
  folder.put(RunDirectory::kConfig, config_yaml(settled));
  settled.engine.parallel_microbatches = 1;
  EXPECT_EQ(read_settled(folder.path())->resolved, settled) << "of before there were microbatches";
  settled.engine.parallel_microbatches = 4;
  folder.put(RunDirectory::kConfig, config_yaml(settled));
  EXPECT_EQ(read_settled(folder.path())->given, settled) << "nothing was changed";
  folder.put(RunDirectory::kGivenConfig, config_yaml(config_of(0, 1)));
  EXPECT_EQ(read_settled(folder.path())->given, config_of(0, 1));
  EXPECT_EQ(read_settled(folder.path())->resolved, settled);
  EXPECT_FALSE(read_settled(folder.path())->notes.empty()) << "they have no checksum";
  folder.put(RunDirectory::kConfig, seal_yaml(config_yaml(settled)));
  folder.put(RunDirectory::kGivenConfig, seal_yaml(config_yaml(config_of(0, 1))));
  EXPECT_TRUE(read_settled(folder.path())->notes.empty());
  folder.put(RunDirectory::kGivenConfig, "train: {batch_size: many}\n");
  EXPECT_EQ(read_settled(folder.path())->given, settled) << "damaged: not known any more";
  EXPECT_EQ(read_settled(folder.path())->notes.size(), 1U);
  folder.put(RunDirectory::kConfig, seal_yaml(config_yaml(settled)) + "x");
  EXPECT_THROW(read_settled(folder.path()), DataError) << "there is no checkpoint to tell";
}

}  // namespace
}  // namespace fullbore
