#include <gmock/gmock.h>

#include "fullbore/base/error.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/prepare.h"

namespace fullbore {
namespace {

using testing::HasSubstr;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(PlannedCard, KnowsWhatIsPublishedAndRunsNothing) {
  const std::shared_ptr<Device> device = open_device("card:rtx 4090");
  EXPECT_EQ(device->target().name, "cuda");
  EXPECT_THAT(device->facts().hardware, HasSubstr("RTX 4090"));
  EXPECT_EQ(own_memory_bytes("card:4090"), int64_t{24} << 30);
  EXPECT_DOUBLE_EQ(device->measure_peaks({}).peaks.bytes_per_second, 1.008e12);
  EXPECT_NEAR(device->measure_peaks({}).peaks.host_bytes_per_second, 31.5e9, 1e8);
  EXPECT_THAT(refusal([&] { device->allocate(64); }),
              HasSubstr("engine.device=card:rtx 4090 is a card to plan for"));
  EXPECT_THAT(refusal([&] { device->record(); }), HasSubstr("`plan` alone takes it"));
  EXPECT_THAT(refusal([] { open_device("card:RTX 4080"); }), HasSubstr("is not known"));
  EXPECT_THAT(refusal([] { open_device("card"); }), HasSubstr("Known are RTX 4050 Laptop"));
}

// Bytes that are reused late are the first that a budget takes back.
TEST(PlannedCard, ReusesMemoryLateWhereItHasSome) {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, {DType::f32, {64, 64}});
  for (int i = 0; i < 12; ++i) x = matmul(x, x);
  builder.output("y", x);
  const std::shared_ptr<Device> device = open_device("card:H200");
  const auto peak = [&](int64_t budget) {
    return prepare_program(builder.graph(), *device, {.memory_bytes = budget}).plan.peak_bytes();
  };
  const int64_t late = peak(0);
  const int64_t at_once = peak(late - 1);
  EXPECT_LT(at_once, late / 2);
  EXPECT_EQ(peak(late), late);
  EXPECT_EQ(peak(at_once), at_once);
}

}  // namespace
}  // namespace fullbore
