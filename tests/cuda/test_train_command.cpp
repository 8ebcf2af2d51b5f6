// The command on a card: whole training steps of a model of texts, evaluations and checkpoints included.
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const bool kTiny = use_tiny_model();

class TrainOnCard : public JobTest {
 protected:
  static std::vector<std::string> settings(std::vector<std::string> more) {
    more.insert(more.end(), {"train.steps=6", "train.batch_size=2", "train.eval_interval=3",
                             "train.checkpoint_interval=3", "log.interval=1"});
    return more;
  }

 private:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1,seed=3"};
};

TEST_F(TrainOnCard, HasTheLossesOfTheProcessor) {
  ASSERT_TRUE(kTiny);
  const CommandResult on_cpu = train(settings({"engine.device=cpu", "run.name=cpu"}));
  ASSERT_EQ(on_cpu.exit_code, 0) << on_cpu.err;
  const CommandResult on_card = train(settings({"engine.device=cuda", "run.name=card"}));
  ASSERT_EQ(on_card.exit_code, 0) << on_card.err;
  EXPECT_THAT(on_card.out + on_card.err, HasSubstr("Fake 90, compute capability 9.0"));
  // By kind and step: an evaluation may be told before or after the steps beside it.
  std::map<std::pair<std::string, int>, nlohmann::json> found;
  for (const nlohmann::json& record : metrics("runs/card-1"))
    found[{record["kind"].get<std::string>(), record["step"].get<int>()}] = record;
  int losses = 0;
  for (const nlohmann::json& record : metrics("runs/cpu-1")) {
    if (!record.contains("loss") && !record.contains("validation_loss")) continue;
    const std::pair<std::string, int> place = {record["kind"].get<std::string>(),
                                               record["step"].get<int>()};
    ASSERT_TRUE(found.contains(place)) << place.first << " " << place.second;
    for (const char* const key : {"loss", "validation_loss", "gradient_norm"}) {
      if (!record.contains(key)) continue;
      ++losses;
      const double value = record[key].get<double>();
      // Sums of fp32 in another order, over six steps.
      EXPECT_NEAR(found[place][key].get<double>(), value, 1e-5 * std::abs(value))
          << place.first << " " << place.second << " " << key;
    }
  }
  EXPECT_GE(losses, 6 + 6 + 3);
}

TEST_F(TrainOnCard, SaysThatThereIsNone) {
  const Variable nowhere("FULLBORE_CUDA_DRIVER", "/nowhere/libcuda.so.1");
  const CommandResult refused = train({"engine.device=cuda"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("/nowhere/libcuda.so.1 cannot be loaded"));
  EXPECT_THAT(refused.err, HasSubstr("use engine.device=cpu"));
}

// A card that fails at a launch ends the run by 6, with the step and the call in the error.
TEST_F(TrainOnCard, ExitsBySixWhereTheCardFails) {
  const Variable fails("FULLBORE_FAKE_CUDA",
                       "multiprocessors=1,fail_call=cuGraphLaunch,fail_at=6,fail_code=719");
  const CommandResult failed = train(settings({"engine.device=cuda"}));
  EXPECT_EQ(failed.exit_code, 6) << failed.err;
  EXPECT_THAT(
      failed.err,
      ContainsRegex("step [1-3]: cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED .719.: .*--resume"));
}

}  // namespace
}  // namespace fullbore::cuda
