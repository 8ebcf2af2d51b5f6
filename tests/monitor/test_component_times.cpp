#include "fullbore/monitor/component_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore {
namespace {

TEST(ComponentTimes, LayersCountTogether) {
  EXPECT_EQ(component_of("layers.3.attention.query"), "layers.attention");
  EXPECT_EQ(component_of("head"), "head");
  EXPECT_EQ(component_of("encoder.0.1"), "encoder");
  EXPECT_EQ(component_of("0.1"), "other");
  EXPECT_EQ(component_of(""), "other");
}

// Two products in one component and one in another: each worker's parts are one launch.
TEST(ComponentTimes, AddUpToTheStep) {
  Trace trace("step", true);
  const Tensor x = trace.batch("x", {DType::f32, {8, 8}});
  const auto product = [&](const char* outer, const char* inner, Tensor of) {
    const Scope first(trace, outer);
    const Scope second(trace, inner);
    return matmul(of, x);
  };
  trace.result(
      "y",
      reduce_sum(product("layers", "1", product("head", "up", product("layers", "0", x))), {0, 1}));
  const Plan plan = make_plan(trace.finish(), *open_device("null")->compiler(), {.workers = 2});
  const std::vector<LaunchEntry> list = launch_list(plan);
  std::vector<LaunchEvent> first;
  std::vector<LaunchEvent> second;
  int64_t now = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const int64_t nanoseconds = list[i].node()->scope == "head.up" ? 100 : 1000;
    if (list[i].node()->op->name != "matmul") continue;
    first.push_back({static_cast<int32_t>(i), now, now + nanoseconds / 2});
    second.push_back({static_cast<int32_t>(i), now + nanoseconds / 4, now + nanoseconds});
    now += nanoseconds + 50;
  }
  const std::vector<LaneEvents> workers = {{0, first, 0}, {1, second, 0}};
  const std::vector<ComponentTime> times = ComponentTimes(plan).of(workers, 2.5e-6);
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[0].component, "layers");
  EXPECT_NEAR(times[0].seconds, 2e-6, 1e-15);
  EXPECT_EQ(times[1].component, "head.up");
  EXPECT_NEAR(times[1].seconds, 1e-7, 1e-15);
  EXPECT_EQ(times[2].component, "idle");
  EXPECT_NEAR(times[2].seconds, 4e-7, 1e-15);
}

}  // namespace
}  // namespace fullbore
