// Everything but the arithmetic, at addresses that no host can follow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using ::testing::Each;

TEST(NullDevice, KeepsWhatTheHostWrites) {
  const std::shared_ptr<Device> device = open_device("null");
  State state({{"a", Role::parameter, {DType::f32, {3}}},
               {"b", Role::parameter, {DType::f32, {5}}},
               {"c", Role::moment, {DType::i64, {}}}},
              device);
  EXPECT_THAT(state.read<float>("b"), Each(0.0F));
  state.write("a", std::vector<float>{1, 2, 3});
  state.write("b", std::vector<float>{4, 5, 6, 7, 8});
  EXPECT_EQ(state.read<float>("a"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(state.read<float>("b"), (std::vector<float>{4, 5, 6, 7, 8}));
  state.produce(0, Pieces::any_order, [](int64_t offset, std::span<std::byte> piece) {
    EXPECT_EQ(offset, 0);
    auto* const values = reinterpret_cast<float*>(piece.data());
    std::iota(values, values + piece.size() / sizeof(float), 7.0F);
  });
  EXPECT_EQ(state.read<float>("a"), (std::vector<float>{7, 8, 9}));
  const auto memory = device->allocate_host(64);
  device->snapshot(std::vector<SnapshotPart>{{state.address(0), 16, 12}}, *memory, true);
  memory->wait();
  EXPECT_EQ(reinterpret_cast<const float*>(memory->bytes().data())[5], 8);
}

using NullDeviceDeathTest = ::testing::Test;

TEST(NullDeviceDeathTest, NobodyCanFollowAnAddress) {
  const std::shared_ptr<Device> device = open_device("null");
  const auto memory = device->allocate(1 << 20);
  EXPECT_DEATH(
      {
        const auto* const there = reinterpret_cast<const volatile char*>(memory->address().value);
        (void)*there;
      },
      "");
}

TEST(NullDeviceDeathTest, WhatLiesInNoMemoryIsSeen) {
  const std::shared_ptr<Device> device = open_device("null");
  std::vector<std::byte> bytes(8);
  const auto memory = device->allocate(64);
  EXPECT_DEATH(device->read(memory->address() + 60, bytes), "8 bytes at 60 of memory of 64");
  const Address freed = device->allocate(64)->address();
  EXPECT_DEATH(device->read(freed, bytes), "");
}

// Loops, rows of rows, counts and stop flags that hold nothing: every launch happens as often as it can at most.
TEST(NullDevice, MakesAllIterationsOfEveryLoop) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {4, 3, 8}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {8}});
  const LoopResult outer = loop(builder, {w}, {x}, {.iterations = 4}, [](const LoopBody& body) {
    const LoopResult inner = loop(body.carried[0].builder(), {body.carried[0]}, {body.slices[0]},
                                  {.iterations = 3}, [](const LoopBody& inside) {
                                    const Tensor sum = inside.carried[0] + inside.slices[0];
                                    return IterationResults{.carried = {sum}, .stacked = {sum * 2}};
                                  });
    return IterationResults{.carried = {inner.carried[0]}, .stacked = {inner.stacked[0]}};
  });
  builder.output("rows", outer.stacked[0]);
  builder.output("w", outer.carried[0], 1);
  const Graph graph = builder.take();
  State state(state_entries(graph), open_device("null", 2));
  Program program = Program::compile(graph, state);
  program.set_profiling(true);
  alignas(64) float batch[4 * 3 * 8] = {};
  const void* const pointers[] = {batch};
  for (int run = 0; run < 2; ++run) {
    program.run(pointers);
    const std::vector<LaunchEntry> list = launch_list(program.plan());
    std::vector<int64_t> counts(list.size(), 0);
    const std::vector<LaneEvents> lanes = program.events();
    ASSERT_EQ(lanes.size(), 1U);
    for (const LaunchEvent& event : lanes[0].events) ++counts[static_cast<size_t>(event.launch)];
    for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(counts[i], list[i].times) << i;
  }
}

}  // namespace
}  // namespace fullbore
