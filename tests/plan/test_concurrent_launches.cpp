#include <algorithm>

#include "fullbore/device/registry.h"
#include "fullbore/plan/concurrent_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/ops/ops.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;

std::vector<bool> waits(const std::vector<PlannedLaunch>& launches) {
  std::vector<bool> result;
  for (const PlannedLaunch& launch : launches) result.push_back(launch.waits);
  return result;
}

Plan plan_of(GraphBuilder& builder, bool reuse_memory = true) {
  return make_plan(builder.take(), *open_device("null")->compiler(),
                   {.workers = 2, .reuse_memory = reuse_memory});
}

TEST(ConcurrentLaunches, LaunchesOnOtherBytesDoNotWait) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  builder.output("a", tanh(x));
  builder.output("b", exp(x));
  builder.output("c", sin(x));
  EXPECT_THAT(waits(plan_of(builder).launches), ElementsAre(true, false, false));
}

TEST(ConcurrentLaunches, AReaderWaitsForItsWriter) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  const Tensor a = tanh(x);
  builder.output("b", exp(x));
  builder.output("c", sin(a));
  EXPECT_THAT(waits(plan_of(builder).launches), ElementsAre(true, false, true));
}

TEST(ConcurrentLaunches, OneThatReplacesStateWaitsForItsReaders) {
  GraphBuilder builder("step");
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {16}});
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  builder.output("y", tanh(w));
  builder.output("w", exp(x), 0);
  EXPECT_THAT(waits(plan_of(builder).launches), ElementsAre(true, true));
}

// The bytes of the first chain's intermediate serve the second one's: what is only a matter of place
// makes a launch wait as well, and with places of their own the chains run side by side.
TEST(ConcurrentLaunches, SharedPlacesKeepLaunchesApart) {
  const auto chains = [](bool reuse_memory) {
    GraphBuilder builder("step");
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {1024}});
    const Tensor y = builder.input("y", Role::batch, {DType::f32, {1024}});
    const Tensor a = exp(reshape(x, {32, 32}));
    builder.output("a", reduce_sum(a, {0}));
    const Tensor b = exp(reshape(y, {32, 32}));
    builder.output("b", reduce_sum(b, {0}));
    return waits(plan_of(builder, reuse_memory).launches);
  };
  EXPECT_THAT(chains(true), ElementsAre(true, true, true, true));
  EXPECT_THAT(chains(false), ElementsAre(true, true, false, true));
}

// Looking back costs the square of a level's length: they are cut at 64.
TEST(ConcurrentLaunches, AreOfBoundedLength) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {16}});
  for (int i = 0; i < 70; ++i) builder.output(std::to_string(i), tanh(x));
  const std::vector<bool> found = waits(plan_of(builder).launches);
  ASSERT_EQ(found.size(), 70U);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i], i % 64 == 0) << i;
}

// What stands behind a loop waits for it, and a body's first launch for the iteration's index.
TEST(ConcurrentLaunches, LoopsAreAlone) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4, 16}});
  builder.output("a", tanh(x));
  const LoopResult result = loop(builder, {}, {x}, {.iterations = 4}, [](const LoopBody& body) {
    return IterationResults{.carried = {}, .stacked = {exp(body.slices[0]), sin(body.slices[0])}};
  });
  builder.output("b", cos(x));
  builder.output("c", result.stacked[0]);
  builder.output("d", result.stacked[1]);
  const Plan plan = plan_of(builder);
  const auto found =
      std::ranges::find(plan.launches, PlannedLaunch::Kind::loop, &PlannedLaunch::kind);
  ASSERT_NE(found, plan.launches.end());
  EXPECT_TRUE(found->waits);
  ASSERT_NE(found + 1, plan.launches.end());
  EXPECT_TRUE((found + 1)->waits);
  EXPECT_THAT(waits(found->loop->body), ElementsAre(true, false));
}

}  // namespace
}  // namespace fullbore
