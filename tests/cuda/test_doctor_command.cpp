// What `doctor` says of a card: its memory, its measured peaks, how it is set, and the commands that would change that.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const bool kTiny = use_tiny_model();

class DoctorOnCard : public JobTest {
 protected:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1"};
  Variable nvml_{"FULLBORE_NVML", FB_FAKE_NVML};
};

TEST_F(DoctorOnCard, TellsPeaksSettingsAndCommands) {
  ASSERT_TRUE(kTiny);
  const Variable settings("FULLBORE_FAKE_NVML", "settings");
  const CommandResult told = command({"doctor"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out,
              AllOf(HasSubstr("Fake 90, compute capability 9.0, 4.00 GiB, driver CUDA 12.4"),
                    HasSubstr("Measured peaks of the card\n  fp32"), HasSubstr("\n  tf32 "),
                    HasSubstr("(mma.sync)"), HasSubstr("gpu0         Fake card\n"),
                    HasSubstr("clocks 1410 of 1980 MHz"),
                    HasSubstr("clocks held down by power limit, heat (driver)"),
                    HasSubstr("persistence mode off"), HasSubstr("power limit 600 of 700 W"),
                    HasSubstr("to change    sudo nvidia-smi -i 0 -pm 1: "),
                    HasSubstr("sudo nvidia-smi -i 0 -lgc 1980: "),
                    HasSubstr("sudo nvidia-smi -i 0 -pl 700: ")));
}

// Neither the card's memory nor its settings are a reason to say less of the rest.
TEST_F(DoctorOnCard, SaysWhyItKnowsLess) {
  const Variable small("FULLBORE_FAKE_CUDA", "multiprocessors=1,memory_bytes=1048576");
  const Variable nowhere("FULLBORE_NVML", "/nowhere/libnvidia-ml.so.1");
  const CommandResult told = command({"doctor"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, AllOf(HasSubstr("Measured peaks of the card\n  none         "),
                              HasSubstr("288.0 MiB of memory of card 0"),
                              HasSubstr("Settings of cards\n  unknown      "),
                              HasSubstr("/nowhere/libnvidia-ml.so.1")));
}

TEST_F(DoctorOnCard, TellsTheSameAsJson) {
  const Variable small("FULLBORE_FAKE_CUDA", "multiprocessors=1,memory_bytes=1048576");
  const Variable settings("FULLBORE_FAKE_NVML", "settings");
  const CommandResult told = command({"doctor", "--json"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  const nlohmann::json json = nlohmann::json::parse(told.out);
  EXPECT_EQ(json["card_free_bytes"], 1048576);
  EXPECT_TRUE(json["card_peaks"].is_null());
  const nlohmann::json& card = json["card_settings"].at(0);
  EXPECT_EQ(card["most_clock_mhz"], 1980);
  EXPECT_EQ(card["persistence"], false);
  EXPECT_EQ(card["commands"].size(), 3U);
}

}  // namespace
}  // namespace fullbore::cuda
