// What makes steps faster or smaller, and how it is checked and measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/app/workload.h"
#include "fullbore/base/error.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/latentwire/answer_losses.h"
#include "workloads/latentwire/switch_bench.h"
#include "workloads/latentwire/switch_check.h"

namespace fullbore::latentwire {
namespace {

using ::testing::HasSubstr;

Config config_of(const std::string& rest) {
  return parse_config(
      "{model: {name: latentwire}, wire: {slots: 2, width: 16, layers: 1, heads: 2}, "
      "receivers: {folders: ['bpe=random:bpe']}, train: {steps: 20, batch_size: 4}, "
      "engine: {threads: 1, parallel_microbatches: 1}" +
          rest + "}",
      "x");
}

JobOf jobs(const Config& config) {
  static Console console;
  return open_workload(config, console).job;
}

const Switch& named(std::string_view name) {
  for (const Switch& each : all_switches())
    if (each.name == name) return each;
  throw UsageError("no such switch");
}

TEST(Switches, AreThoseOfTheSpecification) {
  ASSERT_EQ(all_switches().size(), 17U);
  int number = 0;
  for (const Switch& each : all_switches()) EXPECT_EQ(each.number, ++number) << each.name;
  std::vector<int> order;
  for (const Switch* each : rollout()) order.push_back(each->number);
  const std::vector<int> wanted = {6, 16, 12, 15, 3, 2, 4, 9, 7, 10, 11};
  for (const int each : wanted)
    if (all_switches()[static_cast<size_t>(each - 1)].has_two_paths()) {
      ASSERT_FALSE(order.empty());
      EXPECT_EQ(order.front(), each);
      order.erase(order.begin());
    }
  EXPECT_TRUE(order.empty());
}

TEST(Switches, StandForKeysOfTheEngine) {
  const Config config = config_of(
      ", switches: {mixed_precision: on, loader_workers: off, gradient_accumulation: on, "
      "fused_optimizer: off, recompute: on, tiled_attention: off, data_parallel: on}");
  EXPECT_EQ(config.engine.precision, "bf16");
  EXPECT_EQ(config.data.workers, 0);
  EXPECT_EQ(config.engine.accumulate, 2);
  EXPECT_EQ(config.engine.disabled_passes, std::vector<std::string>{"fuse"});
  EXPECT_EQ(config.engine.recompute, "full");
  EXPECT_EQ(config.engine.attention, "decomposed");
  EXPECT_EQ(config.engine.parallel_microbatches, 2);
  EXPECT_EQ(latent_keys(config).switches, LatentKeys::Switches());
  // What a run keeps says the same.
  EXPECT_TRUE(parse_config(config_yaml(config), "y") == config);
  EXPECT_THROW(config_of(", switches: {one_pass: as_set}"), UsageError);
  EXPECT_THROW(config_of(", switches: {gradient_accumulation: on}, train: {batch_size: 5}"),
               UsageError);
}

// A step through a frozen model with many tokens, of 512 rows of logits.
class LargeHead {
 public:
  explicit LargeHead(bool tiled)
      : traced_(trace_training_step(
            [tiled](Trace& trace, std::span<const Tensor> batch) {
              nn::DecoderConfig decoder{.vocabulary = 40000,
                                        .layers = 1,
                                        .heads = 2,
                                        .width = 8,
                                        .hidden = 8,
                                        .context = 16};
              const Tensor one = trace.parameter("prefix", {1, 2, 8}, Initializer::normal(1));
              const FrozenScope frozen(trace);
              const RowLayout layout{.anchor = {5}};
              const nn::DecoderAdditions additions;
              const AnswerBatch rows{.decoder = decoder,
                                     .layout = layout,
                                     .prefix = broadcast_to(one, {kRows, 2, 8}),
                                     .additions = additions,
                                     .answer = batch[0],
                                     .all = batch[1],
                                     .first = batch[1],
                                     .early = batch[1],
                                     .most_early = 2};
              const AnswerWeights weights{.first = full(trace.builder(), {DType::f32, {}}, 0.5),
                                          .early = 0.25};
              return Loss(answer_losses(trace, rows, weights, {.head_rows = tiled}).weighted);
            },
            {{"answer", {DType::i32, {kRows, kLength}}},
             {"factors", {DType::f32, {kRows, kLength}}}},
            {})),
        state_(initial_state(traced_, 1, testing_support::cpu_device(1))),
        program_(Program::compile(traced_.graph, state_)) {}

  const Plan& plan() const { return program_.plan(); }
  std::pair<double, double> run() {
    const TensorMemory answer = allocate_tensor_memory(4 * kRows * kLength);
    const TensorMemory factors = allocate_tensor_memory(4 * kRows * kLength);
    for (int64_t i = 0; i < kRows * kLength; ++i) {
      reinterpret_cast<int32_t*>(answer.get())[i] = static_cast<int32_t>(i * 77 % 40000);
      reinterpret_cast<float*>(factors.get())[i] = i % kLength == i % 3 ? 0.01F : 0.002F;
    }
    program_.run(std::vector<const void*>{answer.get(), factors.get()});
    return {program_.scalar("loss"), program_.scalar("gradient_norm")};
  }

 private:
  static constexpr int64_t kRows = 64, kLength = 8;
  TracedStep traced_;
  State state_;
  Program program_;
};

TEST(Switches, TilesOfTheHeadTakeLessMemoryAndNoMoreWork) {
  LargeHead tiled(true), whole(false);
  EXPECT_LT(tiled.plan().arena_bytes, whole.plan().arena_bytes / 2);
  // The rows of first tokens twice; no gradient of the frozen matrix.
  EXPECT_LT(tiled.plan().flops, 1.1 * whole.plan().flops);
  const auto [loss, norm] = tiled.run();
  const auto [whole_loss, whole_norm] = whole.run();
  EXPECT_NEAR(loss, whole_loss, 1e-6 * whole_loss);
  EXPECT_NEAR(norm, whole_norm, 1e-5 * whole_norm);
}

// Check 13: a batch in parts has the gradient of the whole.
TEST(Switches, PartsOfABatchHaveItsGradient) {
  const Config config = config_of("");
  const JobOf job = jobs(config);
  for (const char* name : {"gradient_accumulation", "data_parallel"}) {
    Config parts = config;
    set_switch(parts, named(name), true);
    const PathDifference difference = compare_paths(config, parts, false, job);
    EXPECT_LE(difference.loss, 1e-6) << name;
    EXPECT_LE(difference.gradient, 1e-5) << name;
    EXPECT_GT(difference.gradient, 0) << name;  // they are not one path
  }
}

TEST(Switches, AreTurnedOffAloudWherePathsDiffer) {
  Config config = config_of(", switches: {one_pass: check, length_buckets: check}");
  const JobOf job = jobs(config);
  // One pass that has another loss.
  const JobOf wrong = [&](const Config& each) {
    Config changed = each;
    if (latent_keys(each).switches.one_pass == "on")
      changed.get<LatentKeys>().loss.early_weight = 0.501;
    return job(changed);
  };
  const std::vector<std::string> lines = settle_checked_switches(config, wrong);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("switch one_pass is TURNED OFF: loss and gradient differ by"));
  EXPECT_THAT(lines[1], HasSubstr("switch length_buckets is on"));
  EXPECT_EQ(latent_keys(config).switches.one_pass, "off");
  EXPECT_EQ(latent_keys(config).switches.length_buckets, "on");
}

// Stage after stage; one whose losses differ is left out of those behind it.
TEST(Switches, AreTriedOneAfterAnother) {
  const Config config = config_of("");
  const JobOf job = jobs(config);
  const JobOf wrong = [&](const Config& each) {
    Config changed = each;
    if (each.engine.attention == "tiled") changed.get<LatentKeys>().loss.first_weight = 0.6;
    if (each.data.workers > 0 && latent_keys(each).switches.head_rows == "off")
      throw UsageError("no");
    return job(changed);
  };
  std::vector<std::string> told;
  const std::vector<SwitchStage> stages = run_switch_bench(
      config, {"bpe"}, wrong,
      {.steps = 4,
       .tried = {&named("loader_workers"), &named("head_rows"), &named("tiled_attention")}},
      [&](const std::string& doing, double) { told.push_back(doing); });
  ASSERT_EQ(stages.size(), 4U);
  EXPECT_EQ(stages[0].losses.size(), 4U);
  EXPECT_FALSE(stages[1].kept);
  EXPECT_EQ(stages[1].reason, "no");
  EXPECT_TRUE(stages[2].kept);
  EXPECT_LE(stages[2].loss_difference, 1e-5);
  EXPECT_FALSE(stages[3].kept);
  EXPECT_THAT(stages[3].reason, HasSubstr("the loss of step 1 differs by"));
  EXPECT_GT(stages[0].model_seconds, 0);
  EXPECT_LT(stages[0].model_seconds, stages[0].step_seconds * 4);
  EXPECT_GT(stages[0].planned_bytes, 0);
  EXPECT_EQ(told.back(), "4 of 4: tiled_attention, step 4 of 4");
  const std::string table = switch_table(stages);
  EXPECT_THAT(table, HasSubstr("TURNED OFF: no"));
  EXPECT_THAT(table, HasSubstr("zero                   not offered"));
  EXPECT_EQ(switch_json(stages)[3]["kept"], false);
}

}  // namespace
}  // namespace fullbore::latentwire
