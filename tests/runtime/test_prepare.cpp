#include "fullbore/runtime/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "fullbore/base/error.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

// exp(factor x), elementwise.
Graph graph_of(double factor) {
  Trace trace("prepared", false);
  const Tensor x = trace.batch("x", {DType::f32, {16}});
  trace.result("y", reduce_sum(exp(x * factor), {0}));
  return trace.finish();
}

TEST(PreparePrograms, AreThoseOfTheGraphsInTheirOrder) {
  std::vector<Graph> graphs;
  for (int i = 0; i < 9; ++i) graphs.push_back(graph_of(i));
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  const std::shared_ptr<Device> device = testing_support::cpu_device(1);
  std::vector<size_t> told;
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<PreparedProgram> prepared = prepare_programs(pointers, *device, {}, [&](size_t done) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    told.push_back(done);
  });
  ASSERT_EQ(prepared.size(), graphs.size());
  EXPECT_EQ(told.front(), 0U);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  State state({}, device);
  alignas(64) float x[16] = {};
  x[0] = 0.5F;
  const void* const batch[] = {x};
  for (size_t i = 0; i < prepared.size(); ++i) {
    Program program = Program::bind(std::move(prepared[i]), state);
    Program alone = Program::compile(graphs[i], state);
    program.run(batch);
    alone.run(batch);
    EXPECT_EQ(program.scalar("y"), alone.scalar("y"));
    EXPECT_NEAR(program.scalar("y"), 15 + std::exp(0.5 * static_cast<double>(i)), 1e-4);
  }
  EXPECT_TRUE(prepare_programs({}, *device, {}).empty());
}

TEST(PreparePrograms, WhatOneOfThemThrowsIsThrown) {
  const Graph graph = graph_of(1);
  const std::vector<const Graph*> graphs(6, &graph);
  const std::shared_ptr<Device> device = testing_support::cpu_device(1);
  EXPECT_THROW(prepare_programs(graphs, *device, {.memory_bytes = 1, .must_fit = true}),
               MemoryError);
  const auto interrupt = [](size_t) { throw DataError("stop"); };
  EXPECT_THROW(prepare_programs(graphs, *device, {}, interrupt), DataError);
}

}  // namespace
}  // namespace fullbore
