#include <gmock/gmock.h>

#include "fullbore/base/error.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"

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
  EXPECT_THAT(refusal([&] { device->allocate(64); }),
              HasSubstr("engine.device=card:rtx 4090 is a card to plan for"));
  EXPECT_THAT(refusal([&] { device->record(); }), HasSubstr("`plan` alone takes it"));
  EXPECT_THAT(refusal([] { open_device("card:RTX 4080"); }), HasSubstr("is not known"));
  EXPECT_THAT(refusal([] { open_device("card"); }), HasSubstr("Known are RTX 4050 Laptop"));
}

}  // namespace
}  // namespace fullbore
