// Kept plans: what compiling anew gives, or nothing.
#include "fullbore/runtime/plan_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "fullbore/base/files.h"
#include "fullbore/device/device.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"
#include "tests/support/random_graph.h"
#include "tests/support/scratch_folder.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

class PlanStoreTest : public ::testing::Test {
 protected:
  CompileOptions keeping() const {
    CompileOptions options;
    options.plan_folder = folder_ / "plans";
    return options;
  }
  /// All that a plan says, lines of model code and modules included.
  static std::string compiled(const Graph& graph, const CompileOptions& options, bool kept) {
    const std::shared_ptr<Device> device = cpu_device(2);
    CompileReport report;
    const Plan plan = compile_plan(graph, *device, *device->compiler(), options, &report);
    EXPECT_EQ(report.plan_was_kept, kept);
    EXPECT_EQ(report.passes.empty(), kept);
    return plan_text(plan) + print(plan.graph) +
           std::string(plan.constants.begin(), plan.constants.end());
  }
  std::string only_entry() const {
    return std::filesystem::directory_iterator(folder_ / "plans")->path().string();
  }
  static Graph some_graph() {
    GraphBuilder builder("rows");
    const Tensor x = builder.input("x", Role::batch, {DType::f32, {8, 64}});
    const Tensor w = builder.input("w", Role::parameter, {DType::f32, {64, 64}});
    const Tensor y = matmul(tanh(matmul(x, w)), w);
    builder.output("w", w + 0.01 * reduce_mean(y * y, {0, 1}), 1);
    builder.output("sum", reduce_sum(softmax(y), {0}));
    return builder.take();
  }
  testing::ScratchFolder folder_;
};

TEST_F(PlanStoreTest, KeptPlansAreThoseOfCompilingAnew) {
  const CompileOptions options = keeping();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const RandomGraph random = random_graph(seed, {.dtype = seed % 2 ? DType::f32 : DType::f64});
    const std::string anew = compiled(random.graph, {}, false);
    EXPECT_EQ(compiled(random.graph, options, false), anew) << seed;
    EXPECT_EQ(compiled(random.graph, options, true), anew) << seed;
  }
}

TEST_F(PlanStoreTest, ProgramsOfKeptPlansMakeTheSameBits) {
  const std::shared_ptr<Device> device = cpu_device(2);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const RandomGraph random = random_graph(seed, {.dtype = DType::f32});
    const auto anew = testing_support::run_graph(random.graph, random.inputs, device, {});
    for (const char* start : {"first", "second"})
      EXPECT_EQ(
          testing_support::compare_bits(
              testing_support::run_graph(random.graph, random.inputs, device, keeping()), anew),
          "")
          << start << " start, seed " << seed;
  }
}

TEST_F(PlanStoreTest, DamageIsHarmlessAndMended) {
  const Graph graph = some_graph();
  const std::string anew = compiled(graph, keeping(), false);
  const std::string path = only_entry();
  const std::string intact = read_file(path).take_or_throw();
  const auto damaged = [&](const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
    EXPECT_EQ(compiled(graph, keeping(), false), anew);
    EXPECT_EQ(read_file(path).take_or_throw(), intact);
  };
  damaged("");
  for (const size_t length : {size_t{10}, intact.size() / 2, intact.size() - 1})
    damaged(intact.substr(0, length));
  for (size_t at = 1; at < intact.size(); at += intact.size() / 15) {
    std::string flipped = intact;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    damaged(flipped);
  }
  EXPECT_EQ(compiled(graph, keeping(), true), anew);
}

// Sound entries of the cache that are no graphs, as another version might leave.
TEST_F(PlanStoreTest, WhatIsNoGraphIsNotTaken) {
  const Graph graph = some_graph();
  const CompileOptions options = keeping();
  const std::string anew = compiled(graph, {}, false);
  const PlanStore store(options.plan_folder);
  const std::string key = store.key(graph, compile_target(*cpu_device(2), options), options);
  for (const char* text : {"", "no graph", "graph \"step\" {\n  %0 = tanh(%9) : f32[2]\n}\n"}) {
    ContentCache(options.plan_folder).put(key, text);
    EXPECT_EQ(compiled(graph, options, false), anew) << text;
  }
}

TEST_F(PlanStoreTest, EverythingThatAPlanFollowsFromIsInItsKey) {
  const PlanStore store(folder_.path());
  std::set<std::string> keys;
  int count = 0;
  const auto add = [&](const Graph& graph, const CompileOptions& options, int workers = 2,
                       const char* device = "cpu") {
    keys.insert(store.key(graph, compile_target(*open_device(device, workers), options), options));
    EXPECT_EQ(keys.size(), static_cast<size_t>(++count));
  };
  const Graph graph = some_graph();
  add(graph, {});
  add(graph, {}, 3);
  add(graph, {}, 2, "null");
  add(graph, {.passes = {.disabled = {"fuse"}}});
  add(graph, {.passes = {.disabled = {"fuse", "algebraic_simplification"}}});
  add(graph, {.reuse_memory = false});
  add(graph, {.precision = DType::bf16});
  add(graph, {.precision = DType::f16});
  add(graph, {}, 2, "card:H200");
  add(graph, {.tf32 = true}, 2, "card:H200");
  add(graph, {.fp32_scopes = {"layers.0"}});
  add(graph, {.fp32_scopes = {"layers.0", "head"}});
  add(graph, {.decomposed = {"attention"}});
  add(graph, {.recompute = Recompute::full});
  add(graph, {.recompute = Recompute::automatic});
  add(graph, {.recompute = Recompute::automatic, .memory_bytes = 1000});
  add(graph, {.recompute = Recompute::automatic, .memory_bytes = 1000, .keeps_snapshot = true});
  add(graph, {.recompute = Recompute::automatic,
              .memory_bytes = 1000,
              .keeps_snapshot = true,
              .lent_state_bytes = 100});
  add(random_graph(1).graph, {});
  CompileOptions elsewhere;
  elsewhere.plan_folder = "elsewhere";
  EXPECT_TRUE(
      keys.contains(store.key(graph, compile_target(*cpu_device(2), elsewhere), elsewhere)));
}

TEST_F(PlanStoreTest, NothingIsKeptUnasked) {
  compiled(some_graph(), {}, false);
  // Dumps are of passes: those run.
  CompileOptions dumping = keeping();
  int dumps = 0;
  dumping.passes.dump = [&](std::string_view, const Graph&) { ++dumps; };
  compiled(some_graph(), dumping, false);
  EXPECT_GT(dumps, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "plans"));
}

}  // namespace
}  // namespace fullbore
