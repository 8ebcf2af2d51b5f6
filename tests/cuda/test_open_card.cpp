// What is said where there is no card that will do.
#include <gmock/gmock.h>

#include "fullbore/base/error.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/device/cuda/driver/result_code.h"
#include "fullbore/device/device_error.h"
#include "fullbore/device/registry.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OpenCard : public FakeCard {
 protected:
  static std::string refusal(const std::string& name = "cuda") {
    return message_of<UsageError>([&] { open(name); });
  }
};

TEST_F(OpenCard, TellsWhatItIs) {
  fake().capability = 89;
  fake().memory_bytes = int64_t{8} << 30;
  const DeviceFacts facts = open()->facts();
  EXPECT_EQ(facts.name, "cuda");
  EXPECT_EQ(facts.hardware, "Fake 89, compute capability 8.9, 8.00 GiB, driver CUDA 12.4");
  EXPECT_EQ(open()->target().name, "cuda");
}

TEST_F(OpenCard, TellsWhatAnOlderDriverLacks) {
  fake().version = 12030;
  EXPECT_THAT(open()->facts().hardware,
              HasSubstr("driver CUDA 12.3, before 12.4: the host steps loops"));
}

TEST_F(OpenCard, TakesTheOneThatIsNumbered) {
  fake().cards = 2;
  EXPECT_EQ(open("cuda:1")->facts().name, "cuda:1");
  EXPECT_THAT(refusal("cuda:2"),
              AllOf(HasSubstr("cuda:2: there are cards 2 (0: Fake 90, 1: Fake 90)"),
                    HasSubstr("engine.device=cuda:1 or engine.device=cpu")));
  EXPECT_THAT(refusal("cuda:two"), HasSubstr("the number of a card, from 0 on"));
  EXPECT_THAT(refusal("cuda:-1"), HasSubstr("the number of a card, from 0 on"));
}

TEST_F(OpenCard, SaysThatThereIsNoDriver) {
  const Variable driver("FULLBORE_CUDA_DRIVER", "/nowhere/libcuda.so.1");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("/nowhere/libcuda.so.1 cannot be loaded"),
                               HasSubstr("use engine.device=cpu")));
}

TEST_F(OpenCard, SaysWhichFunctionTheDriverLacks) {
  const Variable driver("FULLBORE_CUDA_DRIVER", "libm.so.6");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("libm.so.6 has no function cuDriverGetVersion"),
                               HasSubstr("use engine.device=cpu")));
}

TEST_F(OpenCard, SaysThatThereIsNoCard) {
  fake().start = kNoDevice;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("no NVIDIA card"), HasSubstr("CUDA_VISIBLE_DEVICES"),
                               HasSubstr("use engine.device=cpu")));
  fake().start = 0;
  fake().cards = 0;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("no NVIDIA card"), HasSubstr("use engine.device=cpu")));
}

TEST_F(OpenCard, SaysThatTheDriverIsTooOld) {
  fake().version = 12010;
  fake().start = 803;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("the driver of CUDA 12.1; 12.2 or later is needed"),
                               HasSubstr("use engine.device=cpu")));
}

TEST_F(OpenCard, SaysThatTheDriverDoesNotStart) {
  fake().start = kSystemNotReady;
  EXPECT_THAT(refusal(), HasSubstr("cuInit: CUDA_ERROR_SYSTEM_NOT_READY (802)"));
}

TEST_F(OpenCard, SaysThatTheCardIsTooOld) {
  fake().capability = 75;
  EXPECT_THAT(refusal(), AllOf(HasSubstr("card 0 (Fake 75) has compute capability 7.5"),
                               HasSubstr("8.0 or later is needed; use engine.device=cpu")));
}

TEST_F(OpenCard, NamesTheSizesWhereMemoryIsTaken) {
  fake().memory_bytes = 10 << 20;
  const auto device = open();
  const auto held = device->allocate(4 << 20);
  EXPECT_THAT(message_of<MemoryError>([&] { (void)device->allocate(8 << 20); }),
              AllOf(HasSubstr("8.00 MiB of memory of card 0 (Fake 90) are wanted, 6.00 MiB of "
                              "10.0 MiB are free"),
                    HasSubstr("CUDA_ERROR_OUT_OF_MEMORY (2)")));
}

TEST_F(OpenCard, IsWhatAutoTakesWhereItCanBeUsed) {
  EXPECT_EQ(open("auto")->facts().name, "cuda");
  EXPECT_EQ(own_memory_bytes("auto"), fake().memory_bytes);
  fake().capability = 75;
  EXPECT_EQ(automatic_device().name, "cpu");
  EXPECT_THAT(automatic_device().why, HasSubstr("compute capability 7.5; 8.0 or later is needed"));
}

TEST_F(OpenCard, ExitsBySixWhereTheDeviceFails) {
  EXPECT_EQ(static_cast<int>(DeviceError("").code()), 6);
}

// Every call on the way fails once: what was taken is given back, and the call is named.
TEST_F(OpenCard, GivesBackWhatItTookWhicheverCallFails) {
  int failures = 0;
  for (int64_t at = 1;; ++at) {
    fake().fail_at = at;
    fake().fail_code = kUnknown;
    std::string message;
    try {
      const auto device = open();
      if (fake().fail_at > 0) {
        fake().fail_at = 0;
        break;
      }
    } catch (const Error& error) {
      message = error.what();
    }
    const std::string call = fake().failed;
    // A thing that the driver refuses to take back is its own.
    if (message.empty()) {
      EXPECT_THAT(call,
                  ::testing::AnyOf(HasSubstr("Destroy"), HasSubstr("Release"),
                                   HasSubstr("cuCtxSetCurrent"), HasSubstr("cuDriverGetVersion")));
      FakeCuda& now = fake();
      now.streams = now.contexts = 0;
      continue;
    }
    ++failures;
    EXPECT_THAT(message, HasSubstr(call));
    EXPECT_EQ(fake().streams, 0) << call;
    EXPECT_EQ(fake().contexts, 0) << call;
  }
  EXPECT_GT(failures, 8);
}

}  // namespace
}  // namespace fullbore::cuda
