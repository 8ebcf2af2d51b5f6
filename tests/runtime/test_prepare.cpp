#include "fullbore/runtime/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "fullbore/base/error.h"
#include "fullbore/device/registry.h"
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

/// Of graph_of() them, for a device of two workers.
PlannedPrograms planned(const std::vector<double>& factors, const CompileOptions& options = {}) {
  const std::shared_ptr<Device> device = testing_support::cpu_device(2);
  PlannedPrograms programs;
  for (const double factor : factors) {
    Graph graph = graph_of(factor);
    PlannedProgram program = plan_program(graph, *device, options);
    programs.add(std::move(graph), *device, options, std::move(program));
  }
  return programs;
}

// For another device of the same kind: the first one is gone.
TEST(PlannedPrograms, AreTakenForTheirGraphsAndMakeTheSameBits) {
  const std::vector<Graph> graphs = {graph_of(1), graph_of(2), graph_of(3), graph_of(2)};
  std::vector<const Graph*> pointers;
  for (const Graph& graph : graphs) pointers.push_back(&graph);
  PlannedPrograms before = planned({2, 7, 1});
  const std::shared_ptr<Device> device = testing_support::cpu_device(2);
  std::vector<PreparedProgram> prepared = prepare_programs(pointers, *device, {}, {}, &before);
  std::vector<bool> were_planned;
  State state({}, device);
  alignas(64) float x[16] = {};
  x[3] = 0.25F;
  const void* const batch[] = {x};
  for (size_t i = 0; i < graphs.size(); ++i) {
    were_planned.push_back(prepared[i].was_planned);
    Program program = Program::bind(std::move(prepared[i]), state);
    Program alone = Program::compile(graphs[i], state);
    program.run(batch);
    alone.run(batch);
    EXPECT_EQ(program.scalar("y"), alone.scalar("y")) << i;
  }
  EXPECT_EQ(were_planned, std::vector<bool>({true, true, false, false}));
  EXPECT_FALSE(before.take(graph_of(2), *device, {}));
  EXPECT_TRUE(before.take(graph_of(7), *device, {}));
}

TEST(PlannedPrograms, AreNotTakenWhereAnythingIsSetOtherwise) {
  const Graph graph = graph_of(2);
  const std::shared_ptr<Device> device = testing_support::cpu_device(2);
  PlannedPrograms before = planned({2});
  for (const CompileOptions& other :
       std::initializer_list<CompileOptions>{{.passes = {.disabled = {"fuse"}}},
                                             {.reuse_memory = false},
                                             {.precision = DType::bf16},
                                             {.fp32_scopes = {"layers.0"}},
                                             {.decomposed = {"attention"}},
                                             {.row_invariant = true},
                                             {.compile = CompileEffort::fast},
                                             {.recompute = Recompute::full},
                                             {.memory_bytes = 1 << 20},
                                             {.keeps_snapshot = true},
                                             {.copies_frozen_weights = false}})
    EXPECT_FALSE(before.take(graph, *device, other));
  CompileOptions dumping;
  dumping.passes.dump = [](std::string_view, const Graph&) {};
  EXPECT_FALSE(before.take(graph, *device, dumping));
  EXPECT_FALSE(before.take(graph, *testing_support::cpu_device(3), {}));
  EXPECT_FALSE(before.take(graph, *open_device("null", 2), {}));
  EXPECT_FALSE(before.take(graph_of(2.5), *device, {}));
  // Where plans are kept on disk, and who is told what, is no matter of the plan.
  CompileOptions alike;
  alike.plan_folder = "elsewhere";
  alike.must_fit = true;
  alike.on_notices = [](std::span<const std::string>) {};
  EXPECT_TRUE(before.take(graph, *device, alike));
}

}  // namespace
}  // namespace fullbore
