#include <gtest/gtest.h>

#include "fullbore/base/counted.h"
#include "fullbore/base/error.h"
#include "fullbore/base/shape.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

TEST(Text, NearestName) {
  const std::vector<std::string> names = {"train.batch_size", "train.steps", "model.width"};
  EXPECT_EQ(nearest_name("train.batchsize", names), "train.batch_size");
  EXPECT_EQ(nearest_name("train.step", names), "train.steps");
  EXPECT_EQ(nearest_name("zzzzzzzz", names), "");
  EXPECT_EQ(did_you_mean("model.widht", names), " Did you mean 'model.width'?");
}

TEST(Text, CountsOfThings) {
  EXPECT_EQ(counted(1, "seed"), "1 seed");
  EXPECT_EQ(counted(0, "seed"), "0 seeds");
  EXPECT_EQ(counted(2, "switch"), "2 switches");
}

TEST(Text, Quantities) {
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(count_text(124439808), "124.4 M");
  EXPECT_EQ(duration_text(0.045), "45ms");
  EXPECT_EQ(duration_text(185), "3m05s");
  EXPECT_EQ(duration_text(3720), "1h02m");
}

TEST(Text, TypesAndPlaces) {
  EXPECT_EQ((TensorType{DType::f32, {8, 1024}}).text(), "f32[8,1024]");
  EXPECT_EQ((TensorType{DType::boolean, {}}).text(), "bool[]");
  EXPECT_EQ((SourceLoc{"/a/b/models/example.cpp", 88}).text(), "models/example.cpp:88");
  EXPECT_STREQ(UsageError("no", {"models/example.cpp", 3}).what(), "no (models/example.cpp:3)");
}

TEST(Shape, StridesAndEdits) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(shape.strides(), (std::vector<int64_t>{12, 4, 1}));
  EXPECT_EQ(shape.without(1), (Shape{2, 4}));
  EXPECT_EQ(shape.inserted(0, 7), (Shape{7, 2, 3, 4}));
  EXPECT_EQ(shape.slice(1, 3), (Shape{3, 4}));
  EXPECT_EQ(Shape{}.elements(), 1);
}

}  // namespace
}  // namespace fullbore
