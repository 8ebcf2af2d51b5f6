// Where a loop's stacked rows are made, and the memory of crews.
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

// Five rows, each of which goes through a chain of three values and a loop of its own.
Plan parallel_plan(int workers, bool parallel = true, int crews = 0) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {5, 4, 16}});
  const LoopResult rows =
      loop(builder, {}, {x}, {.trips = 5, .parallel = parallel}, [](const LoopBody& body) {
        const Tensor a = exp(body.slices[0]), b = tanh(a), c = b * a;
        const LoopResult inner =
            loop(c.builder(), {reduce_sum(c, {0})}, {}, {.trips = 3, .parallel = false},
                 [](const LoopBody& in) {
                   return LoopStep{.carried = {tanh(in.carried[0])}, .stacked = {}};
                 });
        return LoopStep{.carried = {}, .stacked = {inner.carried[0]}};
      });
  builder.output("sum", reduce_sum(rows.stacked[0], {0}));
  return make_plan(builder.take(), *make_null_backend(), {.workers = workers, .crews = crews});
}

const LoopPlan& loop_of(const Plan& plan) {
  return *std::ranges::find(plan.steps, Step::Kind::loop, &Step::kind)->loop;
}

TEST(PlanLoop, EachCrewHasMemoryOfItsOwn) {
  for (const int workers : {2, 3, 5, 8}) {
    const Plan plan = parallel_plan(workers);
    const int index = loop_of(plan).memory;
    ASSERT_GE(index, 0);
    const Buffer& memory = plan.buffers[static_cast<size_t>(index)];
    EXPECT_EQ(memory.crews, std::min(workers, 5)) << "no more crews than trips";
    EXPECT_EQ(crew_count(plan, loop_of(plan)), memory.crews);
    EXPECT_EQ(memory.space, Space::arena);
    EXPECT_EQ(memory.bytes, memory.crews * memory.stride);
    EXPECT_EQ(memory.stride % 4096, 0) << "crews share no page";
    EXPECT_LE(memory.offset + memory.bytes, plan.arena_bytes);
    std::vector<const Buffer*> own;
    for (const Buffer& buffer : plan.buffers)
      if (buffer.space == Space::crew) own.push_back(&buffer);
    EXPECT_GE(own.size(), 5U);  // index, exp, tanh, product, sum, another index
    for (const Buffer* a : own) {
      EXPECT_EQ(a->base, index);
      EXPECT_LE(a->offset + a->bytes, memory.stride);
      for (const Buffer* b : own) {
        const bool meet = a->first <= b->last && b->first <= a->last &&
                          a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
        EXPECT_TRUE(a == b || !meet) << a->what << " and " << b->what;
      }
    }
  }
}

TEST(PlanLoop, OneWorkerNeedsNoCrews) {
  const Plan alone = parallel_plan(1), ordinary = parallel_plan(1, false);
  EXPECT_EQ(loop_of(alone).memory, -1);
  EXPECT_EQ(loop_of(parallel_plan(4, false)).memory, -1);
  EXPECT_EQ(alone.arena_bytes, ordinary.arena_bytes);
  EXPECT_TRUE(std::ranges::none_of(alone.buffers, [](const Buffer& buffer) {
    return buffer.space == Space::crew || buffer.crews > 0;
  }));
}

TEST(PlanLoop, FewerCrewsTakeLessMemory) {
  const auto bytes = [](int crews) {
    const Plan plan = parallel_plan(8, true, crews);
    EXPECT_EQ(most_crews(plan), crews == 0 ? 5 : crews);
    return plan.arena_bytes;
  };
  EXPECT_LT(bytes(2), bytes(0));
  EXPECT_LT(bytes(1), bytes(2));
}

// The workers of a crew have no others to make trips with.
TEST(PlanLoop, ALoopWithinTheTripsOfCrewsIsAnOrdinaryOne) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 3, 16}});
  const LoopResult outer =
      loop(builder, {}, {x}, {.trips = 2, .parallel = true}, [](const LoopBody& body) {
        const LoopResult rows =
            loop(body.slices[0].builder(), {}, {body.slices[0]}, {.trips = 3, .parallel = true},
                 [](const LoopBody& in) {
                   return LoopStep{.carried = {}, .stacked = {exp(in.slices[0])}};
                 });
        return LoopStep{.carried = {}, .stacked = {rows.stacked[0]}};
      });
  builder.output("rows", outer.stacked[0]);
  const Plan plan = make_plan(builder.take(), *make_null_backend(), {.workers = 6});
  const LoopPlan& loop = loop_of(plan);
  EXPECT_GE(loop.memory, 0);
  EXPECT_EQ(std::ranges::find(loop.body, Step::Kind::loop, &Step::kind)->loop->memory, -1);
}

TEST(PlanLoop, CrewsAreOfNeighboursAndAsEqualAsCanBe) {
  for (const int workers : {1, 2, 3, 7, 16})
    for (int crews = 1; crews <= workers; ++crews)
      for (int crew = 0; crew < crews; ++crew) {
        const int begin = first_worker(crew, crews, workers);
        const int end = first_worker(crew + 1, crews, workers);
        EXPECT_GE(end - begin, workers / crews);
        EXPECT_LE(end - begin, (workers + crews - 1) / crews);
        for (int worker = begin; worker < end; ++worker)
          EXPECT_EQ(crew_of(worker, crews, workers), crew);
      }
}

}  // namespace
}  // namespace fullbore
