// Shared memory of a block beyond what a kernel has unasked: its own variables count too.
#include <gmock/gmock.h>

#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/device_error.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

// Writes its argument behind its own 36 KiB, reads it back, and stores it.
constexpr const char* kPtx = R"(.version 7.0
.target sm_80
.address_size 64
.shared .align 16 .b8 own[36864];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry pass_on(.param .u64 to, .param .u32 number) {
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [number];
  mov.u32 %r2, dynamic;
  st.shared.u32 [%r2+1020], %r1;
  ld.shared.u32 %r3, [%r2+1020];
  st.shared.u32 [own], %r3;
  cvta.to.global.u64 %rd2, %rd1;
  st.global.u32 [%rd2], %r3;
  ret;
}
)";

class SharedMemory : public FakeCard {
 protected:
  static uint32_t pass_on(int64_t dynamic_bytes) {
    const auto context = std::make_shared<Context>(load_driver(), 0);
    const auto module = std::make_shared<Module>(Module{.name = "shared", .ptx = kPtx});
    const CardMemory memory(context, 4);
    const FunctionHandle function = context->function(module, "pass_on", dynamic_bytes);
    DevicePointer to = memory.get();
    uint32_t number = 7, found = 0;
    void* arguments[] = {&to, &number};
    const Driver& driver = context->enter();
    driver.launch(function, 1, 1, 1, 1, 1, 1, static_cast<unsigned>(dynamic_bytes), context->main(),
                  arguments, nullptr);
    driver.copy_out(&found, memory.get(), sizeof found, context->main());
    driver.wait_for_stream(context->main());
    return found;
  }
};

TEST_F(SharedMemory, KernelsOwnAndTheLaunchsTogetherAreAskedFor) {
  EXPECT_EQ(pass_on(12 << 10), 7u);          // 48 KiB in all: as it is
  EXPECT_EQ(pass_on((12 << 10) + 16), 7u);   // beyond it, each less
  EXPECT_EQ(pass_on((227 - 36) << 10), 7u);  // all that a block may have
}

TEST_F(SharedMemory, MoreThanABlockMayHaveIsAnError) {
  EXPECT_THAT(message_of<DeviceError>([] { pass_on(((227 - 36) << 10) + 16); }),
              ::testing::HasSubstr("'pass_on'"));
}

}  // namespace
}  // namespace fullbore::cuda
