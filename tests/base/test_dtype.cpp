#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/base/dtype.h"

namespace fullbore {
namespace {

TEST(DType, NamesReadBack) {
  for (DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  EXPECT_EQ(parse_dtype("f8"), std::nullopt);
}

TEST(DType, EveryF16SurvivesF32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
    else
      EXPECT_EQ(f32_to_f16(value), bits);
  }
}

TEST(DType, EveryBf16SurvivesF32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    else
      EXPECT_EQ(f32_to_bf16(value), bits);
  }
}

// Between two neighbours the nearer is taken, and at the middle the even one.
template <class ToBits, class FromBits>
void expect_round_to_even(ToBits to_bits, FromBits from_bits, uint16_t largest) {
  for (uint16_t bits = 0; bits < largest; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    const float low = from_bits(bits);
    const float high = from_bits(next);
    const float middle = low + (high - low) / 2;
    const uint16_t even = (bits & 1) == 0 ? bits : next;
    ASSERT_EQ(to_bits(middle), even) << bits;
    ASSERT_EQ(to_bits(std::nextafter(middle, low)), bits);
    ASSERT_EQ(to_bits(std::nextafter(middle, high)), next);
    ASSERT_EQ(to_bits(-middle), even | 0x8000);
  }
}

TEST(DType, F16RoundsToNearestEven) { expect_round_to_even(f32_to_f16, f16_to_f32, 0x7bff); }

TEST(DType, Bf16RoundsToNearestEven) { expect_round_to_even(f32_to_bf16, bf16_to_f32, 0x7f7f); }

TEST(DType, LargeValuesBecomeInfinity) {
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(f32_to_f16(-std::numeric_limits<float>::infinity()), 0xfc00);
}

TEST(DType, BytesHaveASignOrNone) {
  EXPECT_TRUE(is_integer(DType::u8) && is_integer(DType::i8) && !is_integer(DType::boolean));
  EXPECT_TRUE(is_signed_integer(DType::i8) && is_signed_integer(DType::i64));
  EXPECT_FALSE(is_signed_integer(DType::u8) || is_signed_integer(DType::f32));
  EXPECT_FALSE(is_floating(DType::i8));
  EXPECT_EQ(dtype_bytes(DType::i8), 1);
  EXPECT_EQ(dtype_largest(DType::i8), 127);
}

TEST(DType, IntegersTruncateAndWrap) {
  EXPECT_EQ(round_to_dtype(-2.9, DType::i32), -2);
  EXPECT_EQ(round_to_dtype(259, DType::u8), 3);
  EXPECT_EQ(round_to_dtype(-1.9, DType::i8), -1);
  EXPECT_EQ(round_to_dtype(130, DType::i8), -126);
  EXPECT_EQ(round_to_dtype(4294967297.0, DType::i32), 1);
  EXPECT_EQ(round_to_dtype(std::nan(""), DType::i64), 0);
  EXPECT_EQ(round_to_dtype(0.25, DType::boolean), 1);
}

}  // namespace
}  // namespace fullbore
