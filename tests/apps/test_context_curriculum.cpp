#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/language_batches.h"
#include "fullbore/data/staged_batches.h"
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
  more.insert(more.end(), {"model.name=hybrid", "data.batching=sequences", "data.split=sequences"});
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

/// Batches that tell their number, of so many tokens.
class NumberedBatches : public BatchSource {
 public:
  explicit NumberedBatches(int64_t length)
      : fields_{{"inputs", {DType::i32, {1, length}}}, {"resets", {DType::boolean, {2, 1}}}} {}
  const std::vector<BatchField>& fields() const override { return fields_; }
  void fill(uint64_t position, std::span<void* const> buffers) const override {
    static_cast<int32_t*>(buffers[0])[0] = static_cast<int32_t>(position);
    std::fill_n(static_cast<bool*>(buffers[1]), 2, false);
  }

 private:
  std::vector<BatchField> fields_;
};

TEST(StagedBatches, EachStageReadsOnFromItsOwnPlaceAndForgets) {
  const StagedBatches batches({{0, 0, std::make_shared<NumberedBatches>(8)},
                               {3, 20, std::make_shared<NumberedBatches>(16)},
                               {5, 7, std::make_shared<NumberedBatches>(8)}});
  ASSERT_EQ(batches.shapes().size(), 2U) << "each once, that of the last stage first";
  EXPECT_EQ(batches.fields()[0].type.shape[1], 8);
  const std::vector<std::pair<int32_t, bool>> expected = {
      {0, true}, {1, false}, {2, false}, {20, true}, {21, false}, {7, true}, {8, false}};
  for (size_t position = expected.size(); position-- > 0;) {
    std::vector<int32_t> inputs(16);
    std::array<bool, 2> resets{};
    void* const buffers[] = {inputs.data(), resets.data()};
    batches.fill(position, buffers);
    EXPECT_EQ(inputs[0], expected[position].first) << position;
    EXPECT_EQ(resets[0], expected[position].second) << position;
    EXPECT_EQ(resets[1], expected[position].second) << position;
    const bool middle = position == 3 || position == 4;
    EXPECT_EQ(batches.shape_at(position), middle ? 1U : 0U) << position;
  }
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
                                 "data.batching=sequences", "data.split=sequences",
                                 "data.initial_state=carry", "engine.parallel_microbatches=1"}}) {
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
