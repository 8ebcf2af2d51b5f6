// Where a loop's stacked rows are made, and the memory of thread groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/device/registry.h"
#include "fullbore/device/thread_groups.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/plan.h"

namespace fullbore {
namespace {

int64_t copies(const std::vector<PlannedLaunch>& launches) {
  int64_t count = std::ranges::count(launches, PlannedLaunch::Kind::copy, &PlannedLaunch::kind);
  for (const PlannedLaunch& launch : launches)
    if (launch.loop) count += copies(launch.loop->body);
  return count;
}

// Three iterations, each of which stacks what the iterations of a loop within it stack: rows of rows.
Plan plan_of(const LoopOptions& inner, bool reuse_memory = true) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {3, 4, 16}});
  const LoopResult outer = loop(builder, {}, {x}, {.iterations = 3}, [&](const LoopBody& body) {
    const LoopResult rows =
        loop(body.slices[0].builder(), {}, {body.slices[0]}, inner, [](const LoopBody& in) {
          return IterationResults{.carried = {}, .stacked = {exp(in.slices[0])}};
        });
    return IterationResults{.carried = {}, .stacked = {rows.stacked[0]}};
  });
  builder.output("sum", reduce_sum(outer.stacked[0], {0}));
  return make_plan(builder.take(), *open_device("null")->compiler(),
                   {.workers = 2, .reuse_memory = reuse_memory});
}

TEST(PlanLoop, RowsOfRowsAreMadeInTheirPlace) {
  const Plan plan = plan_of({.iterations = 4});
  EXPECT_EQ(copies(plan.launches), 0);
  const Plan apart = plan_of({.iterations = 4}, false);
  EXPECT_GE(copies(apart.launches), 1);
  EXPECT_LT(plan.arena_bytes, apart.arena_bytes);
}

// Five rows, each of which goes through a chain of three values and a loop of its own.
Plan parallel_plan(int workers, bool parallel = true, int thread_groups = 0) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {5, 4, 16}});
  const LoopResult rows =
      loop(builder, {}, {x}, {.iterations = 5, .parallel = parallel}, [](const LoopBody& body) {
        const Tensor a = exp(body.slices[0]), b = tanh(a), c = b * a;
        const LoopResult inner =
            loop(c.builder(), {reduce_sum(c, {0})}, {}, {.iterations = 3, .parallel = false},
                 [](const LoopBody& in) {
                   return IterationResults{.carried = {tanh(in.carried[0])}, .stacked = {}};
                 });
        return IterationResults{.carried = {}, .stacked = {inner.carried[0]}};
      });
  builder.output("sum", reduce_sum(rows.stacked[0], {0}));
  return make_plan(builder.take(), *open_device("null")->compiler(),
                   {.workers = workers, .thread_groups = thread_groups});
}

const LoopPlan& loop_of(const Plan& plan) {
  return *std::ranges::find(plan.launches, PlannedLaunch::Kind::loop, &PlannedLaunch::kind)->loop;
}

// State that each iteration adds to; what it was before, or is in the middle, may be wanted too.
Plan plan_of_carried_state(bool wants_old, bool in_place = true) {
  GraphBuilder builder("step");
  const Tensor state = builder.input("pool", Role::recurrent, {DType::f32, {64, 16}});
  const LoopResult result =
      loop(builder, {state}, {}, {.iterations = 3}, [&](const LoopBody& body) {
        const Tensor before = body.carried[0];
        return IterationResults{
            .carried = {in_place
                            ? tanh(before)
                            : matmul(before, full(before.builder(), {DType::f32, {16, 16}}, 0.5))}};
      });
  if (wants_old) builder.output("old", reduce_sum(state, {0}) + reduce_sum(result.carried[0], {0}));
  builder.output("pool", result.carried[0], 0);
  return make_plan(builder.take(), *open_device("cpu", 2)->compiler(), {.workers = 2});
}

TEST(PlanLoop, StateThatIsCarriedAndReplacedInPlaceIsNeverCopied) {
  const Plan plan = plan_of_carried_state(false);
  EXPECT_EQ(copies(plan.launches), 0);
  EXPECT_TRUE(loop_of(plan).carries.empty());
  EXPECT_EQ(copies(plan_of_carried_state(true).launches), 2) << "who wants the old value has it";
  EXPECT_EQ(copies(plan_of_carried_state(false, false).launches), 2)
      << "a copy there and back, not one for each iteration";
}

TEST(PlanLoop, EachThreadGroupHasMemoryOfItsOwn) {
  for (const int workers : {2, 3, 5, 8}) {
    const Plan plan = parallel_plan(workers);
    const int index = loop_of(plan).memory;
    ASSERT_GE(index, 0);
    const Buffer& memory = plan.buffers[static_cast<size_t>(index)];
    EXPECT_EQ(memory.thread_groups, std::min(workers, 5))
        << "no more thread groups than iterations";
    EXPECT_EQ(thread_group_count(plan, loop_of(plan)), memory.thread_groups);
    EXPECT_EQ(memory.space, Space::arena);
    EXPECT_EQ(memory.bytes, memory.thread_groups * memory.stride);
    EXPECT_EQ(memory.stride % 4096, 0) << "thread groups share no page";
    EXPECT_LE(memory.offset + memory.bytes, plan.arena_bytes);
    std::vector<const Buffer*> own;
    for (const Buffer& buffer : plan.buffers)
      if (buffer.space == Space::thread_group) own.push_back(&buffer);
    EXPECT_GE(own.size(), 5U);  // index, exp, tanh, matmul, sum, another index
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

TEST(PlanLoop, OneWorkerNeedsNoThreadGroups) {
  const Plan alone = parallel_plan(1), ordinary = parallel_plan(1, false);
  EXPECT_EQ(loop_of(alone).memory, -1);
  EXPECT_EQ(loop_of(parallel_plan(4, false)).memory, -1);
  EXPECT_EQ(alone.arena_bytes, ordinary.arena_bytes);
  EXPECT_TRUE(std::ranges::none_of(alone.buffers, [](const Buffer& buffer) {
    return buffer.space == Space::thread_group || buffer.thread_groups > 0;
  }));
}

TEST(PlanLoop, FewerThreadGroupsTakeLessMemory) {
  const auto bytes = [](int thread_groups) {
    const Plan plan = parallel_plan(8, true, thread_groups);
    EXPECT_EQ(most_thread_groups(plan), thread_groups == 0 ? 5 : thread_groups);
    return plan.arena_bytes;
  };
  EXPECT_LT(bytes(2), bytes(0));
  EXPECT_LT(bytes(1), bytes(2));
}

// The workers of a thread group have no others to make iterations with.
TEST(PlanLoop, ALoopWithinTheIterationsOfThreadGroupsIsAnOrdinaryOne) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, 3, 16}});
  const LoopResult outer =
      loop(builder, {}, {x}, {.iterations = 2, .parallel = true}, [](const LoopBody& body) {
        const LoopResult rows =
            loop(body.slices[0].builder(), {}, {body.slices[0]},
                 {.iterations = 3, .parallel = true}, [](const LoopBody& in) {
                   return IterationResults{.carried = {}, .stacked = {exp(in.slices[0])}};
                 });
        return IterationResults{.carried = {}, .stacked = {rows.stacked[0]}};
      });
  builder.output("rows", outer.stacked[0]);
  const Plan plan = make_plan(builder.take(), *open_device("null")->compiler(), {.workers = 6});
  const LoopPlan& loop = loop_of(plan);
  EXPECT_GE(loop.memory, 0);
  EXPECT_EQ(
      std::ranges::find(loop.body, PlannedLaunch::Kind::loop, &PlannedLaunch::kind)->loop->memory,
      -1);
}

TEST(PlanLoop, ThreadGroupsAreOfNeighboursAndAsEqualAsCanBe) {
  for (const int workers : {1, 2, 3, 7, 16})
    for (int thread_groups = 1; thread_groups <= workers; ++thread_groups)
      for (int thread_group = 0; thread_group < thread_groups; ++thread_group) {
        const int begin = first_worker(thread_group, thread_groups, workers);
        const int end = first_worker(thread_group + 1, thread_groups, workers);
        EXPECT_GE(end - begin, workers / thread_groups);
        EXPECT_LE(end - begin, (workers + thread_groups - 1) / thread_groups);
        for (int worker = begin; worker < end; ++worker)
          EXPECT_EQ(thread_group_of(worker, thread_groups, workers), thread_group);
      }
}

}  // namespace
}  // namespace fullbore
