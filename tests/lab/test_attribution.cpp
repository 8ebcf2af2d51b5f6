#include "fullbore/lab/diagnosis/attribution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/lab/diagnosis/inactive_switches.h"

namespace fullbore {
namespace {

PhaseSeconds phases() {
  PhaseSeconds seconds;
  seconds[RunPhase::start] = 4;
  seconds[RunPhase::data] = 1;
  seconds[RunPhase::step] = 10;
  seconds[RunPhase::evaluation] = 2;
  seconds[RunPhase::checkpoint] = 0.5;
  seconds[RunPhase::host] = 0.5;
  return seconds;
}

const std::vector<StartPart> kStart = {
    {"data", 1}, {"compile", 2}, {"evaluation", 5}, {"step", 0.5}};

// Half of the steps were recorded: what they tell is told of all.
TEST(Attribution, KernelsAndGapsAreTheSteps) {
  const RecordedSteps recorded = {
      .step_seconds = 5,
      .kernels = {{.name = "matmul", .seconds = 3, .launches = 8, .roofline_seconds = 2},
                  {.name = "fused", .seconds = 1, .launches = 4, .roofline_seconds = 1}},
      .idle_seconds = 1};
  const Attribution found = attribute(18, phases(), kStart, recorded, 0.3);
  EXPECT_DOUBLE_EQ(found.seconds(), 18);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::step, "matmul"), 6);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::step, kIdle), 2);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::step), 10);
  EXPECT_DOUBLE_EQ(found.loop_seconds(), 11.5);
  EXPECT_EQ(found.rows.front().phase, RunPhase::start);
  for (const AttributionRow& row : found.rows)
    if (row.what == "matmul") {
      EXPECT_DOUBLE_EQ(row.roofline_seconds, 4);
      EXPECT_DOUBLE_EQ(row.launches, 16);
    }
}

// What was recorded twice would show: rows are not made to fit.
TEST(Attribution, ASumThatIsTooLargeStaysSo) {
  const RecordedSteps recorded = {.step_seconds = 5,
                                  .kernels = {{.name = "matmul", .seconds = 10, .launches = 8}}};
  EXPECT_GT(attribute(18, phases(), kStart, recorded, 0.3).seconds(), 25);
}

TEST(Attribution, TheStartIsItsPartsAndTheRest) {
  const Attribution found = attribute(18, phases(), kStart, {}, 0.3);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::start, "compile"), 2);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::start, "first step"), 0.5);
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::start, "measure the machine"), 0.5)
      << "evaluations are a phase";
  EXPECT_DOUBLE_EQ(found.seconds(RunPhase::step, kStep), 10);
}

TEST(Attribution, IsProjectedPhaseByPhase) {
  const Attribution measured = attribute(18, phases(), kStart, {}, 0.3);
  const RunCounts few = {.steps = 10, .evaluated_batches = 4, .saves = 1};
  const RunCounts many = {.steps = 1000, .evaluated_batches = 40, .saves = 3};
  const Attribution whole = project(measured, few, many);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::start), 4);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::step), 1000);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::data), 100);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::evaluation), 20);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::checkpoint, "save"), 0.9);
  EXPECT_DOUBLE_EQ(whole.seconds(RunPhase::checkpoint, kLastSave), 0.2);
  EXPECT_DOUBLE_EQ(whole.wall_seconds, whole.seconds());
}

// The run has the seconds, the steps that were measured afterwards the kernels.
TEST(Attribution, ARunHasTheKernelsOfStepsThatAreMade) {
  const Attribution run = attribute(18, phases(), kStart, {}, 0.3);
  PhaseSeconds few = phases();
  few[RunPhase::step] = 2;
  const Attribution measured = attribute(
      10, few, kStart,
      {.step_seconds = 2,
       .kernels = {{.name = "matmul", .seconds = 1.5, .launches = 8, .roofline_seconds = 0.5}},
       .idle_seconds = 0.5},
      0);
  const Attribution both = with_steps_of(run, measured);
  EXPECT_DOUBLE_EQ(both.seconds(RunPhase::step, "matmul"), 7.5);
  EXPECT_DOUBLE_EQ(both.seconds(RunPhase::step, kIdle), 2.5);
  EXPECT_DOUBLE_EQ(both.seconds(RunPhase::step, kStep), 0);
  EXPECT_DOUBLE_EQ(both.seconds(), 18);
  for (const AttributionRow& row : both.rows)
    if (row.what == "matmul") {
      EXPECT_DOUBLE_EQ(row.roofline_seconds, 2.5);
    }
  EXPECT_DOUBLE_EQ(with_steps_of(run, {}).seconds(RunPhase::step, kStep), 10);
}

TEST(Attribution, GradientsAreOfTheirOpsClass) {
  EXPECT_EQ(kernel_class_of("attention_gradient"), "attention");
  EXPECT_EQ(kernel_class_of("matmul"), "matmul");
}

std::vector<std::string> at_rest(const Config& config, const SwitchFacts& facts) {
  std::vector<std::string> settings;
  for (const InactiveSwitch& each : inactive_switches(config, facts))
    settings.push_back(each.setting + " -> " + each.without);
  return settings;
}
using Settings = std::vector<std::string>;

TEST(InactiveSwitches, OfDefaultsThereAreNone) { EXPECT_EQ(at_rest({}, {}), Settings{}); }

TEST(InactiveSwitches, Bf16OfAProcessorWithoutIt) {
  Config config;
  config.engine.precision = "bf16";
  EXPECT_EQ(at_rest(config, {.native_bf16 = false}),
            Settings{"engine.precision=bf16 -> engine.precision=fp32"});
  EXPECT_EQ(at_rest(config, {.native_bf16 = true}), Settings{});
}

TEST(InactiveSwitches, RecomputationThatRecomputesNothing) {
  Config config;
  config.engine.recompute = "auto";
  const auto changed = [](bool did) {
    return SwitchFacts{.passes = {{.name = "rematerialize", .ran = true, .changed = did}}};
  };
  EXPECT_EQ(at_rest(config, changed(false)),
            Settings{"engine.recompute=auto -> engine.recompute=off"});
  EXPECT_EQ(at_rest(config, changed(true)), Settings{});
  EXPECT_EQ(at_rest(config, {}), Settings{}) << "nobody knows";
}

TEST(InactiveSwitches, APassThatWouldChangeNothingAnyway) {
  Config config;
  config.engine.disabled_passes = {"fuse", "prepack_operands"};
  const SwitchFacts facts{.all_passes = {{.name = "fuse", .ran = true, .changed = true},
                                         {.name = "prepack_operands", .ran = true}}};
  EXPECT_EQ(at_rest(config, facts),
            Settings{"engine.disabled_passes=[prepack_operands] -> engine.disabled_passes=[fuse]"});
}

TEST(InactiveSwitches, LoadersOfBatchesThatAreMade) {
  Config config;
  config.data.workers = 4;
  config.train.early_stopping = 3;
  EXPECT_EQ(at_rest(config, {.makes_batches = true, .has_validation = false}),
            (Settings{"data.workers=4 -> data.workers=1",
                      "train.early_stopping=3 -> train.early_stopping=0"}));
  EXPECT_EQ(at_rest(config, {.makes_batches = false, .has_validation = true}), Settings{});
}

}  // namespace
}  // namespace fullbore
