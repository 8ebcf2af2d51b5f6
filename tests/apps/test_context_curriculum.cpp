#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/language_batches.h"
#include "fullbore/train/context_curriculum.h"
#include "tests/apps/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

class ContextCurriculum : public JobTest {
 protected:
  const std::vector<std::string> staged_ = {
      "model.context=16", "data.context_curriculum=[until_step=4 length=4, until_step=9 length=8]"};

  CommandResult staged(const std::string& run, std::vector<std::string> more) const {
    more.insert(more.begin(), staged_.begin(), staged_.end());
    more.push_back("run.dir=" + run);
    return train(more);
  }
  /// Steps' losses by step, from lines of every step.
  std::map<int64_t, double> losses(const std::string& run) const {
    std::map<int64_t, double> found;
    for (const nlohmann::json& record : metrics(run))
      if (record["kind"] == "train") found[record["step"]] = record["loss"];
    return found;
  }
};

std::vector<Shape> shapes_of(const Config& config) {
  std::vector<Shape> shapes;
  for (const std::vector<BatchField>& each : batch_shapes(config))
    shapes.push_back(each.front().type.shape);
  return shapes;
}

TEST(ContextStages, ABatchOfWindowsKeepsItsTokensAndOneOfTracksItsRows) {
  const std::vector<std::string> settings = {
      "model.context=1024", "train.batch_size=2",
      "data.context_curriculum=[until_step=10 length=128, until_step=30 length=512]"};
  const Config windows = parse_config("", "x", settings);
  EXPECT_EQ(shapes_of(windows),
            (std::vector<Shape>{Shape{2, 1024}, Shape{4, 512}, Shape{16, 128}}));
  std::vector<std::string> more = settings;
  more.insert(more.end(), {"model.name=hybrid", "data.batching=tracks", "data.split=tracks"});
  EXPECT_EQ(shapes_of(parse_config("", "x", more)),
            (std::vector<Shape>{Shape{2, 1024}, Shape{2, 512}, Shape{2, 128}}));
  const std::vector<ContextStage> stages = context_stages(windows);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[1].first_step, 10U);
  EXPECT_EQ(stages[2].length, 1024);
}

TEST(ContextStages, WhatMakesNoCurriculumIsRefused) {
  const auto refusal = [](const std::string& items, const std::string& other = "run.seed=1") {
    const std::vector<std::string> settings = {"model.context=1024", other,
                                               "data.context_curriculum=[" + items + "]"};
    try {
      parse_config("", "x", settings);
      return std::string();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal("until_step=5 length=128"), "");
  EXPECT_THAT(refusal("until_step=5 length=96"), HasSubstr("does not divide model.context"));
  EXPECT_THAT(refusal("until_step=5 length=2048"), HasSubstr("goes beyond model.context"));
  EXPECT_THAT(refusal("until_step=5 length=128, until_step=5 length=256"),
              HasSubstr("ends no later than what is before it, at step 5"));
  for (const char* item : {"length=128", "until_step=5", "until_step=0 length=128", "5:128",
                           "until_step=5 length=1e2", "until_step=5 length=8 length=8"})
    EXPECT_THAT(refusal(item), HasSubstr("is no {until_step: STEPS, length: TOKENS}")) << item;
  EXPECT_THAT(refusal("until_step=5 length=128", "data.batching=packed"),
              HasSubstr("data.context_curriculum"));
}

TEST_F(ContextCurriculum, ResumesToTheSameBitsAcrossItsStages) {
  const std::vector<std::string> constant = {"optim.schedule=constant", "log.interval=1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), constant.begin(), constant.end());
    return more;
  };
  for (const std::vector<std::string>& kind :
       {std::vector<std::string>{"train.steps=14"},
        std::vector<std::string>{"train.steps=14", "model.name=hybrid", "model.inner=32",
                                 "model.mamba_heads=2", "model.states=8", "model.hidden=32",
                                 "model.chunk=4", "model.mix_rank=4", "model.decay_rank=4",
                                 "data.batching=tracks", "data.split=tracks",
                                 "data.initial_state=carry", "engine.shards=1"}}) {
    const std::string name = kind.size() > 1 ? "hybrid" : "gpt";
    const CommandResult whole = staged(name, with(kind));
    ASSERT_EQ(whole.exit_code, 0) << whole.err;
    std::vector<std::string> until = kind;
    until.front() = "train.steps=6";  // within the second stage
    ASSERT_EQ(staged(name + "-parts", with(until)).exit_code, 0);
    std::vector<std::string> rest = with(kind);
    rest.emplace_back("--resume");
    const CommandResult resumed = staged(name + "-parts", rest);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    const std::map<int64_t, double> all = losses(name);
    EXPECT_EQ(all.size(), 14U);
    EXPECT_EQ(losses(name + "-parts"), all);
    // The first stage is of other batches than the same steps without a curriculum.
    std::vector<std::string> plain = with(kind);
    plain.insert(plain.end(), {"model.context=16", "run.dir=" + name + "-plain"});
    ASSERT_EQ(train(plain).exit_code, 0);
    EXPECT_NE(losses(name + "-plain").at(1), all.at(1));
  }
}

}  // namespace
}  // namespace fullbore
