#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/data/staged_batches.h"
#include "fullbore/text/context_curriculum.h"
#include "fullbore/text/text_batches.h"
#include "tests/support/context_curriculum_test.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

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
  more.insert(more.end(), {"data.batching=sequences", "data.split=sequences"});
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
  expect_same_bits_resumed({"train.steps=14"}, "run");
}

}  // namespace
}  // namespace fullbore
