#include "fullbore/device/registry.h"
#include "fullbore/plan/launch_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/ops/ops.h"
#include "fullbore/plan/report.h"

namespace fullbore {
namespace {

using ::testing::StartsWith;

const MachinePeaks kPeaks = {1e9, 2e9, 1e9};

// tanh, then three iterations of (two iterations of exp and a sum, then tanh).
Plan nested_plan() {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  const LoopResult outer =
      loop(builder, {tanh(x)}, {}, {.iterations = 3}, [&](const LoopBody& body) {
        const LoopResult inner =
            loop(body.carried[0].builder(), {body.carried[0]}, {}, {.iterations = 2},
                 [](const LoopBody& inside) {
                   return IterationResults{.carried = {exp(inside.carried[0])}};
                 });
        return IterationResults{.carried = {tanh(inner.carried[0])}};
      });
  builder.output("y", outer.carried[0]);
  return make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 2});
}

TEST(LaunchList, LoopsStandBeforeWhatTheyHold) {
  const Plan plan = nested_plan();
  const std::vector<LaunchEntry> list = launch_list(plan);
  int outer = -1;
  int inner = -1;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].parent >= 0) {
      EXPECT_LT(list[i].parent, static_cast<int>(i));
      EXPECT_EQ(list[static_cast<size_t>(list[i].parent)].launch->kind, PlannedLaunch::Kind::loop);
    }
    if (list[i].launch->kind == PlannedLaunch::Kind::loop)
      (outer < 0 ? outer : inner) = static_cast<int>(i);
  }
  ASSERT_GE(inner, 0);
  EXPECT_EQ(list[static_cast<size_t>(inner)].parent, outer);
  EXPECT_EQ(list[static_cast<size_t>(inner)].times, 3);
  for (const LaunchEntry& launch : list)
    if (launch.node() != nullptr && launch.node()->op->name == "exp") {
      EXPECT_EQ(launch.parent, inner);
      EXPECT_EQ(launch.times, 6);
    }
  EXPECT_THAT(launch_text(plan, list[static_cast<size_t>(outer)]),
              StartsWith("loop of 3 iterations"));
}

TEST(LaunchList, CostsAddUpToThePlanReports) {
  const Plan plan = nested_plan();
  const PlanReport report = report_plan(plan, kPeaks);
  double flops = 0;
  double kernels_roofline = 0;
  int64_t kernels = 0;
  for (const LaunchEntry& launch : launch_list(plan)) {
    const auto times = static_cast<double>(launch.times);
    flops += times * launch_cost(plan, launch).flops;
    if (launch.launch->kind != PlannedLaunch::Kind::kernel) continue;
    kernels += launch.times;
    kernels_roofline += times * launch_roofline_seconds(plan, launch, kPeaks);
  }
  EXPECT_DOUBLE_EQ(flops, report.flops);
  EXPECT_DOUBLE_EQ(kernels_roofline, report.roofline_seconds);
  EXPECT_EQ(kernels, 1 + 3 * (2 + 1));
}

// Of 16 floats: what comes from outside of the body is copied after each of the five iterations, what the body made is
// exchanged and copied once at most.
TEST(LaunchList, LoopsCostWhatTheirCarriedValuesMove) {
  GraphBuilder builder("step");
  const Tensor a = builder.input("a", Role::batch, {DType::f32, {16}});
  const Tensor rows = builder.input("rows", Role::batch, {DType::f32, {5, 16}});
  const LoopResult result =
      loop(builder, {a, a}, {rows}, {.iterations = 5}, [](const LoopBody& body) {
        return IterationResults{.carried = {body.slices[0], reverse(body.carried[1], 0)}};
      });
  builder.output("y", result.carried[0] + result.carried[1]);
  const Plan plan = make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 1});
  const std::vector<LaunchEntry> list = launch_list(plan);
  const auto loop = std::ranges::find_if(list, [](const LaunchEntry& launch) {
    return launch.launch->kind == PlannedLaunch::Kind::loop;
  });
  ASSERT_NE(loop, list.end());
  ASSERT_EQ(loop->launch->loop->carries.size(), 2U);
  EXPECT_FALSE(loop->launch->loop->carries[0].exchanged);
  EXPECT_TRUE(loop->launch->loop->carries[1].exchanged);
  EXPECT_EQ(launch_cost(plan, *loop).bytes, 2 * 64 * (5 + 1));
  EXPECT_EQ(launch_cost(plan, *loop).flops, 0);
  EXPECT_DOUBLE_EQ(launch_roofline_seconds(plan, *loop, kPeaks), 2 * 64 * (5 + 1) / 1e9);
}

}  // namespace
}  // namespace fullbore
