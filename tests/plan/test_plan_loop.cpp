// Where a loop's stacked rows are made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/ops/ops.h"
#include "fullbore/plan/plan.h"

namespace fullbore {
namespace {

int64_t copies(const std::vector<Step>& steps) {
  int64_t count = std::ranges::count(steps, Step::Kind::copy, &Step::kind);
  for (const Step& step : steps)
    if (step.loop) count += copies(step.loop->body);
  return count;
}

// Three trips, each of which stacks what the trips of a loop within it stack: rows of rows.
Plan plan_of(const LoopOptions& inner, bool reuse_memory = true) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4, 16}});
  const LoopResult outer = loop(builder, {}, {x}, {.trips = 3}, [&](const LoopBody& body) {
    const LoopResult rows = loop(
        body.slices[0].builder(), {}, {body.slices[0]}, inner,
        [](const LoopBody& in) { return LoopStep{.carried = {}, .stacked = {exp(in.slices[0])}}; });
    return LoopStep{.carried = {}, .stacked = {rows.stacked[0]}};
  });
  builder.output("sum", reduce_sum(outer.stacked[0], {0}));
  return make_plan(builder.take(), *make_null_backend(),
                   {.workers = 2, .reuse_memory = reuse_memory});
}

TEST(PlanLoop, RowsOfRowsAreMadeInTheirPlace) {
  const Plan plan = plan_of({.trips = 4});
  EXPECT_EQ(copies(plan.steps), 0);
  const Plan apart = plan_of({.trips = 4}, false);
  EXPECT_GE(copies(apart.steps), 1);
  EXPECT_LT(plan.arena_bytes, apart.arena_bytes);
}

}  // namespace
}  // namespace fullbore
