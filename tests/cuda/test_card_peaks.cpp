// The kernels that measure a card are whole, and nothing stays of them.
#include <gtest/gtest.h>

#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using CardPeaks = FakeCard;

TEST_F(CardPeaks, AreMeasuredInTheMemoryThatIsAllowed) {
  fake().multiprocessors = 1;
  const auto device = open();
  const int64_t before = fake().allocated_bytes;
  const MeasuredPeaks measured = device->measure_peaks({.bytes = 4 << 20});
  EXPECT_GT(measured.peaks.fp32_flops, 0);
  EXPECT_GT(measured.peaks.bf16_flops, 0);
  EXPECT_GT(measured.peaks.tf32_flops, 0);
  EXPECT_EQ(measured.tf32_method, "mma.sync");
  EXPECT_GT(measured.peaks.bytes_per_second, 0);
  EXPECT_GT(measured.peaks.host_bytes_per_second, 0);
  EXPECT_TRUE(measured.in_caches);
  EXPECT_TRUE(measured.native_bf16);
  EXPECT_GE(fake().launches, 3);
  EXPECT_EQ(fake().allocated_bytes, before);
  EXPECT_EQ(fake().pinned, 0);
}

TEST_F(CardPeaks, AreMeasuredInMemoryThatIsLent) {
  fake().multiprocessors = 1;
  fake().memory_bytes = 16 << 20;
  const auto device = open();
  const auto memory = device->allocate(12 << 20);
  const MeasuredPeaks measured = device->measure_peaks(
      {.bytes = 1 << 20, .lent = memory->address(), .lent_bytes = memory->bytes()});
  EXPECT_GT(measured.peaks.bytes_per_second, 0);
  EXPECT_GT(measured.peaks.host_bytes_per_second, 0);
}

}  // namespace
}  // namespace fullbore::cuda
