#include "workloads/energy_flow/bridge_measure.h"

#include <gtest/gtest.h>

namespace fullbore::energy_flow {
namespace {

TEST(BridgeMeasure, WordsAreRightAtTheirPlaces) {
  EXPECT_DOUBLE_EQ(words_right("a red cat", "a red cat"), 1);
  EXPECT_DOUBLE_EQ(words_right("a red cat", "a cat red"), 1.0 / 3);
  EXPECT_DOUBLE_EQ(words_right("a red cat", "a red cat sits"), 3.0 / 4);
  EXPECT_DOUBLE_EQ(words_right("a red cat", ""), 0);
  EXPECT_DOUBLE_EQ(words_right("", " "), 1);
}

TEST(BridgeMeasure, OverlapIsOfDistinctWords) {
  EXPECT_DOUBLE_EQ(word_overlap("a red cat", "cat red a a"), 1);
  EXPECT_DOUBLE_EQ(word_overlap("a red cat", "the cat"), 1.0 / 4);
  EXPECT_DOUBLE_EQ(word_overlap("a", ""), 0);
  EXPECT_DOUBLE_EQ(word_overlap("", ""), 1);
}

}  // namespace
}  // namespace fullbore::energy_flow
