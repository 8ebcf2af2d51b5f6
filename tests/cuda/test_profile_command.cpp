// What `profile` says of a card's kernels, and of the card while it ran them.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const bool kTiny = use_tiny_model();

class ProfileOnCard : public JobTest {
 protected:
  CommandResult profile(const std::string& device) const {
    return command({"profile", "job.yaml", "data.path=text.txt", "train.batch_size=2",
                    "engine.device=" + device, "--wait", "0", "--warm-up", "0", "--active", "1",
                    "--repeat", "1", "--trace", "", "--json", "profile.json"});
  }
  nlohmann::json told() const { return nlohmann::json::parse(read("profile.json")); }

  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1"};
  Variable nvml_{"FULLBORE_NVML", FB_FAKE_NVML};
  Variable settings_{"FULLBORE_FAKE_NVML", "settings"};
};

TEST_F(ProfileOnCard, TellsOccupanciesAndSensors) {
  ASSERT_TRUE(kTiny);
  const CommandResult result = profile("cuda");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("GB/s peak  occ line          kernel\n"),
                    ContainsRegex("% +[0-9]+[rsb ] +[^ ]+ +matmul"),
                    HasSubstr("threads that a multiprocessor holds at once"),
                    HasSubstr("\ngpu0: utilization 0 %, memory 0 of 16384 MiB, 0 W, 1410 MHz, 0 C, "
                              "slowed down by heat or a limit\n")));
  const nlohmann::json json = told();
  EXPECT_EQ(json["sensors"]["gpu0.clocks.sm"]["value"], 1410);
  int matmuls = 0;
  for (const nlohmann::json& kernel : json["kernels"]) {
    const bool is_matmul = kernel["kernel"].get<std::string>().starts_with("matmul");
    matmuls += is_matmul ? 1 : 0;
    if (!kernel.contains("occupancy")) {
      EXPECT_FALSE(is_matmul) << kernel;
      continue;
    }
    const nlohmann::json& occupancy = kernel["occupancy"];
    const double share = occupancy["share"];
    EXPECT_GT(share, 0) << kernel;
    EXPECT_LE(share, 1) << kernel;
    EXPECT_DOUBLE_EQ(
        share, occupancy["blocks"].get<int>() * occupancy["block_threads"].get<int>() / 2048.0)
        << kernel;
    EXPECT_EQ(occupancy["limit"].is_null(), share == 1) << kernel;
  }
  EXPECT_GT(matmuls, 0);
}

TEST_F(ProfileOnCard, SaysNothingOfCardsOnTheProcessor) {
  const CommandResult result = profile("cpu");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("GB/s peak line          kernel\n"),
                                Not(HasSubstr("occ:")), Not(HasSubstr("gpu0"))));
  const nlohmann::json json = told();
  EXPECT_FALSE(json.contains("sensors"));
  for (const nlohmann::json& kernel : json["kernels"])
    EXPECT_FALSE(kernel.contains("occupancy")) << kernel;
}

TEST_F(ProfileOnCard, LeavesOutWhatNobodyKnows) {
  const Variable nowhere("FULLBORE_NVML", "/nowhere/libnvidia-ml.so.1");
  const CommandResult result = profile("cuda");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(" occ "), Not(HasSubstr("gpu"))));
  EXPECT_THAT(told()["sensors"]["gpu"]["missing"].get<std::string>(), HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace fullbore::cuda
