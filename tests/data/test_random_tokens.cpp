#include "fullbore/data/random_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace fullbore {
namespace {

struct Batch {
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
};

Batch batch_of(const RandomTokens& source, uint64_t position) {
  const auto elements = static_cast<size_t>(source.fields()[0].type.elements());
  Batch batch{std::vector<int32_t>(elements), std::vector<int32_t>(elements)};
  void* const buffers[] = {batch.inputs.data(), batch.targets.data()};
  source.fill(position, buffers);
  return batch;
}

TEST(RandomTokens, AreWithinTheVocabularyAndUseAllOfIt) {
  const RandomTokens source(7, {.batch_size = 5, .context = 40}, 3);
  EXPECT_EQ(source.fields()[0].type, (TensorType{DType::i32, {5, 40}}));
  const Batch batch = batch_of(source, 0);
  EXPECT_EQ(std::set<int32_t>(batch.inputs.begin(), batch.inputs.end()),
            (std::set<int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(RandomTokens, TargetsAreTheInputsOneFurtherOn) {
  const RandomTokens source(1000, {.batch_size = 3, .context = 8}, 1);
  const Batch batch = batch_of(source, 4);
  for (size_t row = 0; row < 3; ++row)
    for (size_t i = 0; i + 1 < 8; ++i)
      EXPECT_EQ(batch.targets[row * 8 + i], batch.inputs[row * 8 + i + 1]);
}

TEST(RandomTokens, FollowFromSeedAndPositionAlone) {
  const RandomTokens source(1000, {.batch_size = 4, .context = 16}, 1);
  const RandomTokens same(1000, {.batch_size = 4, .context = 16}, 1);
  const RandomTokens other(1000, {.batch_size = 4, .context = 16}, 2);
  const Batch second = batch_of(source, 1);
  EXPECT_EQ(second.inputs, batch_of(same, 1).inputs);
  EXPECT_NE(second.inputs, batch_of(other, 1).inputs);
  EXPECT_NE(second.inputs, batch_of(source, 0).inputs);
  const std::vector<int32_t> row0(second.inputs.begin(), second.inputs.begin() + 16);
  const std::vector<int32_t> row1(second.inputs.begin() + 16, second.inputs.begin() + 32);
  EXPECT_NE(row0, row1);
}

TEST(RandomTokens, OneKindOfTokenIsAllowed) {
  const Batch batch = batch_of(RandomTokens(1, {.batch_size = 1, .context = 4}, 9), 0);
  EXPECT_EQ(batch.inputs, std::vector<int32_t>(4, 0));
}

}  // namespace
}  // namespace fullbore
