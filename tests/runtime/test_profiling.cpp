#include <gtest/gtest.h>

#include <set>

#include "fullbore/base/error.h"
#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/runtime/program.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

constexpr int kIterations = 4;

// A large matmul, then iterations of a matmul and a small pointwise chain: launches of all workers and of
// one, inside a loop and outside.
Graph graph_with_loop(int64_t width) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::parameter, {DType::f32, {width, width}});
  const Tensor s = builder.input("s", Role::parameter, {DType::f32, {3}});
  const LoopResult result =
      loop(builder, {matmul(x, x), s}, {}, {.iterations = kIterations}, [&](const LoopBody& body) {
        return IterationResults{
            .carried = {tanh(matmul(body.carried[0], x)), exp(body.carried[1])}};
      });
  builder.output("y", result.carried[0]);
  builder.output("z", result.carried[1]);
  return builder.take();
}

struct Profiled {
  State state;
  Program program;
  explicit Profiled(const Graph& graph, int workers)
      : state(state_entries(graph), cpu_device(workers)), program(Program::compile(graph, state)) {}
};

TEST(Profiling, EveryLaunchIsRecordedOncePerIterationOnEachWorkerThatMakesIt) {
  for (const int workers : {1, 2, 3}) {
    Profiled profiled(graph_with_loop(160), workers);
    Program& program = profiled.program;
    EXPECT_TRUE(program.events().empty());
    program.set_profiling(true);
    for (int run = 0; run < 2; ++run) {
      program.run({});
      const std::vector<LaunchEntry> list = launch_list(program.plan());
      const std::vector<LaneEvents> events = program.events();
      ASSERT_EQ(events.size(), static_cast<size_t>(workers));
      std::vector<int64_t> first(list.size(), 0);
      for (size_t worker = 0; worker < events.size(); ++worker) {
        std::vector<int64_t> counts(list.size(), 0);
        EXPECT_EQ(events[worker].dropped, 0);
        for (const LaunchEvent& event : events[worker].events) {
          ASSERT_LT(static_cast<size_t>(event.launch), list.size());
          ++counts[static_cast<size_t>(event.launch)];
          EXPECT_LE(event.begin_ns, event.end_ns);
        }
        for (size_t i = 0; i < list.size(); ++i) {
          if (worker == 0) {
            EXPECT_EQ(counts[i], list[i].times) << "launch " << i << " of worker 0";
          } else {
            EXPECT_TRUE(counts[i] == 0 || counts[i] == list[i].times) << i;
          }
        }
      }
    }
    program.set_profiling(false);
    program.run({});
    EXPECT_TRUE(program.events().empty());
  }
}

// Each is too small to be spread, but they do not wait for one another: every worker makes some, whole.
TEST(Profiling, SmallLaunchesThatDoNotWaitAreDealtOut) {
  GraphBuilder builder("step");
  for (int64_t size : {3000, 3100, 3200, 3300}) {
    const std::string name = std::to_string(size);
    const Tensor x = builder.input("x" + name, Role::parameter, {DType::f32, {size}});
    builder.output("y" + name, tanh(x));
  }
  Profiled profiled(builder.take(), 2);
  profiled.program.set_profiling(true);
  profiled.program.run({});
  const std::vector<LaneEvents> events = profiled.program.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].events.size(), 2U);
  EXPECT_EQ(events[1].events.size(), 2U);
  std::set<int32_t> launches;
  for (const LaneEvents& worker : events)
    for (const LaunchEvent& event : worker.events) launches.insert(event.launch);
  EXPECT_EQ(launches.size(), 4U) << "each of them once";
}

TEST(Profiling, WhatALoopHoldsLiesWithinIt) {
  Profiled profiled(graph_with_loop(160), 2);
  profiled.program.set_profiling(true);
  profiled.program.run({});
  const std::vector<LaunchEntry> list = launch_list(profiled.program.plan());
  for (const LaneEvents& worker : profiled.program.events()) {
    const LaunchEvent* loop = nullptr;
    int64_t last_begin = 0;
    for (const LaunchEvent& event : worker.events) {
      EXPECT_GE(event.begin_ns, last_begin) << "in the order in which they began";
      last_begin = event.begin_ns;
      const LaunchEntry& launch = list[static_cast<size_t>(event.launch)];
      if (launch.launch->kind == PlannedLaunch::Kind::loop) loop = &event;
      if (launch.parent < 0) continue;
      ASSERT_NE(loop, nullptr);
      EXPECT_GE(event.begin_ns, loop->begin_ns);
      EXPECT_LE(event.end_ns, loop->end_ns);
    }
  }
}

TEST(Profiling, ChangesNoBitsAndAllocatesNothing) {
  const Graph graph = graph_with_loop(64);
  Profiled plain(graph, 2);
  Profiled watched(graph, 2);
  for (Profiled* each : {&plain, &watched}) {
    Edited<float> x(each->state, "x");
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.01F * static_cast<float>(i % 17) - 0.08F;
  }
  plain.program.run({});
  watched.program.set_profiling(true);
  watched.program.run({});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const int64_t allocations = allocation_count();
  watched.program.run({});
  EXPECT_EQ(allocation_count(), allocations);
#endif
  const std::vector<float> a = plain.program.read_result<float>(plain.program.output("y"));
  const std::vector<float> b = watched.program.read_result<float>(watched.program.output("y"));
  EXPECT_EQ(a, b);
}

// 2^21 iterations of one launch are more than there is room for.
TEST(Profiling, TooManyLaunchesAreCountedNotKept) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::parameter, {DType::f32, {1}});
  const int64_t iterations = int64_t{1} << 21;
  const LoopResult result = loop(
      builder, {x}, {}, {.iterations = iterations},
      [](const LoopBody& body) { return IterationResults{.carried = {body.carried[0] * 0.5}}; });
  builder.output("y", result.carried[0]);
  Profiled profiled(builder.take(), 1);
  profiled.program.set_profiling(true);
  profiled.program.run({});
  const LaneEvents events = profiled.program.events()[0];
  int64_t launches = 0;
  for (const LaunchEntry& launch : launch_list(profiled.program.plan())) launches += launch.times;
  EXPECT_GT(events.dropped, 0);
  EXPECT_EQ(static_cast<int64_t>(events.events.size()) + events.dropped, launches);
}

}  // namespace
}  // namespace fullbore
