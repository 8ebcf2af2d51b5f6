// engine.offload=optimizer by the command: the run that it is without, its plan, and where it is refused.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

const bool kTiny = use_tiny_model();

class OffloadCommand : public JobTest {
 protected:
  static std::vector<std::string> settings(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"train.batch_size=2", "train.eval_interval=3",
                                    "train.checkpoint_interval=3", "log.interval=1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::vector<std::string> on_card(std::vector<std::string> more) {
    more.emplace_back("engine.device=cuda");
    return settings(more);
  }
  /// Losses and norms by kind and step.
  std::map<std::string, double> losses(const std::string& run) const {
    std::map<std::string, double> found;
    for (const nlohmann::json& record : metrics(run))
      for (const char* const key : {"loss", "validation_loss", "gradient_norm"})
        if (record.contains(key))
          found[fmt::format("{} {} {}", record["kind"].get<std::string>(),
                            record["step"].get<int>(), key)] = record[key].get<double>();
    return found;
  }
  nlohmann::json plan(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"plan", "job.yaml", "data.path=text.txt", "--json",
                                          "engine.device=card:4090"};
    for (const std::string& each : settings(more)) arguments.push_back(each);
    const CommandResult result = command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }

 private:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1,seed=3"};
};

// Checkpoints, evaluations and a resumed run included: to the bit.
TEST_F(OffloadCommand, HasTheRunThatItIsWithout) {
  ASSERT_TRUE(kTiny);
  const CommandResult without = train(on_card({"run.name=without", "train.steps=6"}));
  ASSERT_EQ(without.exit_code, 0) << without.err;
  const std::vector<std::string> offload = {"run.name=offload", "engine.offload=optimizer"};
  std::vector<std::string> first = offload;
  first.emplace_back("train.steps=6");
  const CommandResult with = train(on_card(first));
  ASSERT_EQ(with.exit_code, 0) << with.err;
  EXPECT_THAT(with.out + with.err, HasSubstr("moments in the host's memory"));
  const std::map<std::string, double> expected = losses("runs/without-1");
  EXPECT_GE(expected.size(), 15U);
  EXPECT_EQ(losses("runs/offload-1"), expected);
  // Either way goes on from the other's checkpoint.
  for (const auto& [from, to] : {std::pair{"without-1", "engine.offload=optimizer"},
                                 std::pair{"offload-1", "engine.offload=none"}}) {
    const CommandResult resumed = command({"train", std::string("runs/") + from, "--resume",
                                           "train.steps=9", to, "engine.device=cuda"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  }
  EXPECT_EQ(losses("runs/offload-1"), losses("runs/without-1"));
  EXPECT_GT(losses("runs/offload-1").size(), expected.size());
}

TEST_F(OffloadCommand, IsPlanned) {
  const nlohmann::json without = plan({}), with = plan({"engine.offload=optimizer"});
  const auto& on_card = without["train"];
  const auto& in_host = with["train"];
  const auto moments = in_host["host_bytes"].get<int64_t>();
  EXPECT_GT(moments, 0);
  EXPECT_EQ(on_card["host_bytes"], 0);
  EXPECT_EQ(in_host["state_bytes"].get<int64_t>() + moments, on_card["state_bytes"]);
  EXPECT_EQ(in_host["host_bytes_read"], in_host["host_bytes_written"]);
  EXPECT_LT(with["planned_peak_bytes"], without["planned_peak_bytes"]);
  // With the copy that background saves need.
  EXPECT_EQ(with["pinned_host_bytes"], 2 * moments);
  EXPECT_EQ(without["pinned_host_bytes"], 0);
  EXPECT_GE(in_host["roofline_seconds"], on_card["roofline_seconds"]);
  const CommandResult text = command({"plan", "job.yaml", "data.path=text.txt",
                                      "engine.device=card:4090", "engine.offload=optimizer"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("of the host's memory, pinned, for moments"));
  EXPECT_THAT(text.out, ContainsRegex("copy from host +[0-9]"));
}

// In a budget, activations and moments on their way share memory; and it is among what would fit, where it would.
TEST_F(OffloadCommand, IsOfferedWhereItSaves) {
  const auto with = [](const std::string& setting) {
    return std::vector<std::string>{
        "model.width=64",        "train.batch_size=32",   "train.background_saves=false",
        "engine.precision=bf16", "engine.recompute=full", setting};
  };
  const auto planned = [&](const std::string& offload) {
    std::vector<std::string> tight = with(offload);
    tight.emplace_back("engine.memory_budget=400000");
    return plan(tight);
  };
  const nlohmann::json on_card = planned("engine.offload=none"),
                       in_host = planned("engine.offload=optimizer");
  const auto needed = in_host["planned_peak_bytes"].get<int64_t>(),
             without = on_card["planned_peak_bytes"].get<int64_t>(),
             moments = in_host["train"]["host_bytes"].get<int64_t>();
  EXPECT_GE(without - needed, moments * 7 / 8);
  const int64_t budget = needed + needed / 63 + 64;
  ASSERT_LT(budget, without);
  std::vector<std::string> tight = with(fmt::format("engine.memory_budget={}", budget));
  tight.emplace_back("engine.device=card:4090");
  const CommandResult refused = train(settings(tight));
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("engine.offload=optimizer"));
  tight.emplace_back("engine.offload=optimizer");
  tight.insert(tight.begin(), {"plan", "job.yaml", "data.path=text.txt"});
  EXPECT_EQ(command(tight).exit_code, 0);
}

TEST_F(OffloadCommand, IsRefusedWhereItCannotBe) {
  const CommandResult on_cpu = train({"engine.offload=optimizer", "engine.device=cpu"});
  EXPECT_EQ(on_cpu.exit_code, 2);
  EXPECT_THAT(on_cpu.err, HasSubstr("moments are in host memory already"));
  const Variable fails("FULLBORE_FAKE_CUDA",
                       "multiprocessors=1,fail_call=cuMemHostAlloc,fail_at=1,fail_code=2");
  const CommandResult failed = train(on_card({"engine.offload=optimizer", "train.steps=2"}));
  EXPECT_EQ(failed.exit_code, 5) << failed.err;
  EXPECT_THAT(failed.err, HasSubstr("of the host's memory are wanted for moments"));
}

}  // namespace
}  // namespace fullbore::cuda
