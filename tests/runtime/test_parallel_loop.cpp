// Iterations that thread groups of workers make side by side are the iterations of an ordinary loop.
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "fullbore/base/aligned_copy.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/executor/worker_choice.h"
#include "fullbore/monitor/launch_times.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/runtime/program.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr int64_t kIterations = 5, kRows = 96, kWidth = 80;

// Matmuls and sums that a thread group's workers share, small launches that one of them makes, a loop that carries,
// and scratch memory; what is stacked is read by the next iteration of a loop around it.
Graph graph_of(bool parallel, bool reverse = false) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, kIterations, kRows, kWidth}});
  const Tensor weight = builder.input("weight", Role::parameter, {DType::f32, {kWidth, kWidth}});
  const LoopResult sums =
      loop(builder, {weight}, {x}, {.iterations = 2}, [&](const LoopBody& around) {
        const Tensor now = around.carried[0];
        const LoopResult rows =
            loop(now.builder(), {}, {around.slices[0]},
                 {.iterations = kIterations, .reverse = reverse, .parallel = parallel},
                 [&](const LoopBody& body) {
                   const Tensor hidden = tanh(matmul(body.slices[0], now));
                   const Tensor norms = sqrt(reduce_sum(hidden * hidden, {0}, true));
                   const LoopResult walked = loop(
                       norms.builder(), {norms}, {}, {.iterations = 3}, [&](const LoopBody& inner) {
                         return IterationResults{.carried = {tanh(inner.carried[0] + 0.125)},
                                                 .stacked = {}};
                       });
                   const Tensor scaled = hidden * walked.carried[0];
                   return IterationResults{
                       .carried = {},
                       .stacked = {matmul(scaled, body.slices[0], {.transpose_a = true}),
                                   cast(body.index, DType::f32) + reduce_sum(scaled, {0, 1})}};
                 });
        const Tensor mean = reduce_sum(rows.stacked[0], {0}) * (1.0 / (kIterations * kRows));
        return IterationResults{.carried = {now + mean}, .stacked = {rows.stacked[1]}};
      });
  // One more, of other iterations.
  const LoopResult squares =
      loop(builder, {}, {sums.stacked[0]}, {.iterations = 2, .parallel = parallel},
           [&](const LoopBody& body) {
             return IterationResults{.carried = {}, .stacked = {body.slices[0] * body.slices[0]}};
           });
  builder.output("weight", sums.carried[0], 1);
  builder.output("sums", squares.stacked[0]);
  return builder.take();
}

struct Made {
  std::vector<float> weight, sums;
  bool operator==(const Made&) const = default;
};

struct Loops {
  State state;
  Program program;
  TensorMemory x;

  Loops(const Graph& graph, int workers, const CompileOptions& options = {})
      : state(state_entries(graph), cpu_device(workers)),
        program(Program::compile(graph, state, options)) {
    PhiloxStream draws(3);
    std::vector<float> values(static_cast<size_t>(2 * kIterations * kRows * kWidth));
    for (float& value : values) value = static_cast<float>(0.1 * draws.normal());
    x = aligned_copy(values);
    for (float& value : Edited<float>(state, "weight"))
      value = static_cast<float>(0.1 * draws.normal());
  }

  void run() {
    const void* const batch[] = {x.get()};
    program.run(batch);
  }

  Made made(int runs) {
    for (int i = 0; i < runs; ++i) run();
    return {state.read<float>("weight"), program.read_result<float>(program.output("sums"))};
  }
};

TEST(ParallelLoop, MakesTheBitsOfAnOrdinaryOneOnAnyNumberOfWorkers) {
  for (const bool reverse : {false, true}) {
    const Made expected = Loops(graph_of(false, reverse), 1).made(3);
    EXPECT_NE(expected.sums[0], expected.sums[1]);
    for (const int workers : {1, 2, 3, 5, 8, 11})
      EXPECT_EQ(Loops(graph_of(true, reverse), workers).made(3), expected) << workers;
  }
}

// A worker that is alone makes what all make together, and counts the same iterations.
TEST(ParallelLoop, MakesTheSameBitsWhereOneWorkerMakesItAlone) {
  const Made expected = Loops(graph_of(false), 1).made(3);
  for (const int workers : {2, 3, 8}) {
    Loops loops(graph_of(true), workers);
    loops.program.set_profiling(true);
    std::vector<int64_t> launches[2];
    Made made;
    for (const bool alone : {false, true, false}) {
      std::optional<cpu::AlwaysAlone> always;
      if (alone) always.emplace();
      made = loops.made(1);
      launches[alone ? 1 : 0].clear();
      for (const LaunchTime& each :
           launch_times(loops.program.events(), launch_list(loops.program.plan())))
        launches[alone ? 1 : 0].push_back(each.launches);
      for (size_t worker = 1; worker < loops.program.events().size(); ++worker)
        EXPECT_EQ(loops.program.events()[worker].events.empty(), alone);
    }
    EXPECT_EQ(made, expected) << workers;
    EXPECT_EQ(launches[0], launches[1]);
  }
}

// Each thread group has memory of its own: where that exceeds the limit, fewer make the iterations side by side.
TEST(ParallelLoop, MakesTheSameBitsInAsManyThreadGroupsAsMemoryAllows) {
  const Graph graph = graph_of(true);
  constexpr int kWorkers = 4;
  Loops all(graph, kWorkers);
  const int64_t bytes = all.program.plan().peak_bytes();
  EXPECT_EQ(most_thread_groups(all.program.plan()), kWorkers);
  const Made expected = all.made(3);
  const testing::ScratchFolder folder;
  for (int again = 0; again < 2; ++again) {  // by passes, and by the graph that was kept of them
    CompileOptions options{.memory_bytes = bytes - 1, .plan_folder = folder / "plans"};
    Loops half(graph, kWorkers, options);
    EXPECT_EQ(most_thread_groups(half.program.plan()), 2);
    EXPECT_LT(half.program.plan().peak_bytes(), bytes);
    EXPECT_EQ(half.made(3), expected);
    options.memory_bytes = half.program.plan().peak_bytes() - 1;
    Loops one(graph, kWorkers, options);
    EXPECT_EQ(most_thread_groups(one.program.plan()), 1);
    EXPECT_LT(one.program.plan().peak_bytes(), half.program.plan().peak_bytes());
    EXPECT_EQ(one.made(3), expected);
  }
}

// `kept` lives across what needs most memory, and is one function of what lives there anyway.
Graph graph_with_a_cheap_value() {
  constexpr int64_t kWide = 640;
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {2, kIterations, kRows, kWidth}});
  const Tensor weight = builder.input("weight", Role::parameter, {DType::f32, {kWidth, kWidth}});
  const Tensor wide = reshape(x, {2 * kIterations * kRows, kWidth});
  const Tensor out = slice(wide, 0, 0, kWide);
  const LoopResult rows = loop(
      builder, {}, {reshape(x, {2 * kIterations, kRows, kWidth})},
      {.iterations = 2 * kIterations, .parallel = true}, [&](const LoopBody& body) {
        const Tensor hidden = matmul(body.slices[0], weight);
        const Tensor kept = tanh(hidden);
        const Tensor most = matmul(matmul(kept, weight), out, {.transpose_b = true});
        const Tensor back = matmul(tanh(most), out);
        return IterationResults{.carried = {},
                                .stacked = {matmul(back, kept, {.transpose_a = true}),
                                            reduce_sum(matmul(hidden, weight) * back, {0, 1})}};
      });
  builder.output("weight", reduce_sum(rows.stacked[0], {0}) * (1.0 / (kIterations * kRows)), 1);
  builder.output("sums", rows.stacked[1]);
  return builder.take();
}

// What makes a step a little longer is tried before what makes it much longer, and changes as few bits.
TEST(ParallelLoop, ComputesCheapValuesAgainBeforeThreadGroupsAreFewer) {
  const Graph graph = graph_with_a_cheap_value();
  constexpr int kWorkers = 4;
  const PassOptions passes{.disabled = {"prepack_operands"}};  // which would be given up first
  Loops all(graph, kWorkers, {.passes = passes});
  const int64_t bytes = all.program.plan().peak_bytes();
  const size_t launches = launch_list(all.program.plan()).size();
  const Made expected = all.made(3);
  const testing::ScratchFolder folder;
  for (int again = 0; again < 2; ++again) {  // by passes, and by the graph that was kept of them
    CompileOptions options{
        .passes = passes, .memory_bytes = bytes - 1, .plan_folder = folder / "plans"};
    Loops fewer(graph, kWorkers, options);
    EXPECT_EQ(most_thread_groups(fewer.program.plan()), 2);
    EXPECT_EQ(fewer.made(3), expected);
    options.recompute = Recompute::automatic;
    Loops a_little(graph, kWorkers, options);
    EXPECT_EQ(most_thread_groups(a_little.program.plan()), kWorkers);
    EXPECT_LT(a_little.program.plan().peak_bytes(), bytes);
    EXPECT_GT(launch_list(a_little.program.plan()).size(), launches);
    EXPECT_EQ(a_little.made(3), expected);
    // What no value can be given up for needs fewer.
    options.memory_bytes = bytes / 2;
    Loops less(graph, kWorkers, options);
    EXPECT_LT(most_thread_groups(less.program.plan()), kWorkers);
    EXPECT_EQ(less.made(3), expected);
  }
}

TEST(ParallelLoop, AllocatesNothingWhileItRuns) {
  Loops loops(graph_of(true), 3);
  for (int warm_up = 0; warm_up < 10; ++warm_up) loops.run();
  const int64_t allocations = allocation_count();
  for (int replay = 0; replay < 100; ++replay) loops.run();
  EXPECT_EQ(allocation_count(), allocations);
}

// Each iteration's launches are seen once, on workers of one thread group, and all times together are the time in which
// any launch ran, however the machine divides it.
TEST(ParallelLoop, IsProfiledIterationByIteration) {
  for (const int workers : {1, 2, 4, 7}) {
    Loops loops(graph_of(true), workers);
    loops.program.set_profiling(true);
    loops.run();
    const std::vector<LaunchEntry> list = launch_list(loops.program.plan());
    const std::vector<LaneEvents> events = loops.program.events();
    const std::vector<LaunchTime> times = launch_times(events, list);
    bool thread_groups_found = false;
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(times[i].launches, list[i].times) << launch_text(loops.program.plan(), list[i]);
      thread_groups_found |= list[i].thread_groups == std::min<int>(workers, kIterations);
    }
    EXPECT_TRUE(thread_groups_found);
    int64_t begin = INT64_MAX, end = 0;
    for (const LaneEvents& worker : events)
      for (const LaunchEvent& event : worker.events) {
        begin = std::min(begin, event.begin_ns);
        end = std::max(end, event.end_ns);
      }
    double sum = 0;
    for (const LaunchTime& time : times) {
      EXPECT_GE(time.seconds, 0);
      sum += time.seconds;
    }
    const double whole = 1e-9 * static_cast<double>(end - begin);
    EXPECT_LE(
        sum,
        whole * (1 + 1e-9));  // rounding of the sum alone: gaps between launches are no launch's
    EXPECT_GT(sum, 0);
  }
}

}  // namespace
}  // namespace fullbore
