#include "fullbore/runtime/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/passes/memory/memory_lowering.h"
#include "fullbore/runtime/plan_store.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int64_t run_bytes(const Plan& plan, const CompileOptions& options) {
  // A program of a run may read less of what is lent than its step does.
  const int64_t copied = std::max<int64_t>(0, plan.state_bytes - options.lent_state_bytes);
  return plan.peak_bytes() + (options.keeps_snapshot ? copied : 0);
}
bool exceeds(const Plan& plan, const CompileOptions& options) {
  return options.memory_bytes > 0 && run_bytes(plan, options) > options.memory_bytes;
}

/// Passes and planning under one set of options.
class Compilation {
 public:
  Compilation(const DeviceFacts& device, Compiler& compiler, const Target& target,
              const CompileOptions& options)
      : compiler_(compiler),
        target_(target),
        options_(options),
        passes_(options.passes),
        planning_{.workers = device.workers,
                  .alignment = device.alignment,
                  .group_alignment = device.group_alignment,
                  .reuse_memory = options.reuse_memory,
                  .moments_in_host = device.moments_in_host} {}

  Plan plan(Graph graph) const { return make_plan(std::move(graph), compiler_, planning_); }

  // The first to be given up: it makes nothing but launches that need not wait for one another.
  void reuse_memory_at_once(Plan& plan) {
    if (!exceeds(plan, options_)) return;
    planning_.late_reuse = false;
    plan = this->plan(plan.graph);
  }

  // Every thread group of a parallel loop has memory of its own: fewer make its iterations side by side, to the same bits.
  void use_fewer_thread_groups(Plan& plan) {
    for (int thread_groups = most_thread_groups(plan);
         thread_groups > 1 && exceeds(plan, options_);) {
      planning_.thread_groups = thread_groups = (thread_groups + 1) / 2;
      plan = this->plan(plan.graph);
    }
  }

  // What passes take memory for that make a step faster is given up before anything is computed a second time: rows that
  // are gathered, and then matrices that are there packed beside themselves.
  void do_without_faster_passes(const Graph& graph, Plan& plan, std::vector<PassRecord>& records) {
    for (const char* const pass : {"batch_weight_gradients", "prepack_operands"}) {
      if (!exceeds(plan, options_)) return;
      if (std::none_of(records.begin(), records.end(), [&](const PassRecord& record) {
            return record.name == pass && record.changed;
          }))
        continue;
      PassOptions passes = passes_;
      passes.disabled.insert(pass);
      std::vector<PassRecord> others;
      Plan without = this->plan(run_passes(graph, target_, passes, &others));
      if (without.peak_bytes() >= plan.peak_bytes()) continue;
      plan = std::move(without);
      records = std::move(others);
      passes_ = std::move(passes);
    }
  }

  // Thread groups that share launches take more time than a little arithmetic does: where values that are cheap to make
  // again are enough, every group keeps its memory. False if they are not, and the plan is as it was.
  bool recompute_a_little(Plan& plan) const {
    if (most_thread_groups(plan) == 1) return false;
    Plan smaller = with_values_recomputed(plan);
    if (exceeds(smaller, options_) || work(smaller.graph) > kMostWork * work(plan.graph))
      return false;
    plan = std::move(smaller);
    return true;
  }

  // As many thread groups as fit work on what it leaves, as they will where that graph is found in the plan folder.
  void recompute(Plan& plan) {
    plan = with_values_recomputed(std::move(plan));
    if (planning_.thread_groups == 0) return;
    planning_.thread_groups = 0;
    plan = this->plan(plan.graph);
    use_fewer_thread_groups(plan);
  }

 private:
  static constexpr int kMostAttempts = 8;
  // Threads that share launches take longer than threads with microbatches of their own: with two threads one microbatch took
  // 1.12 and 1.25 times as long as two (bench/results/2026-11-24-shards-by-job.txt).
  static constexpr double kMostWork = 1.15;
  // Arithmetic that takes as long as moving a byte does.
  static constexpr double kFlopsPerByte = 8;

  static double work(const Graph& graph) {
    const Cost cost = graph_cost(graph);
    return cost.flops + kFlopsPerByte * cost.bytes;
  }

  // The estimate that recomputation works with knows no scratch memory and no gaps: what the plan takes
  // beyond the limit is taken off it until the plan fits or nothing more can be given up. What is given up of an
  // iteration is given up in the memory of every thread group.
  Plan with_values_recomputed(Plan plan) const {
    const Graph graph = plan.graph;
    Target target = target_;
    int64_t estimate = estimated_arena_bytes(graph);
    int groups = most_thread_groups(plan);
    for (int i = 0; i < kMostAttempts && exceeds(plan, options_); ++i) {
      const int64_t excess = run_bytes(plan, options_) - options_.memory_bytes;
      target.arena_bytes = std::max<int64_t>(1, estimate - (excess + groups - 1) / groups);
      groups = 1;  // the first attempt comes near; what is missing then may be outside their memory
      Graph smaller = run_pass("rematerialize", graph, target);
      const int64_t reached = estimated_arena_bytes(smaller);
      Plan attempt = this->plan(std::move(smaller));
      // Where gaps eat up what the estimate saves, the next attempt gives up more.
      if (attempt.peak_bytes() < plan.peak_bytes()) plan = std::move(attempt);
      if (reached > target.arena_bytes) break;
      estimate = reached;
    }
    return plan;
  }

  Compiler& compiler_;
  const Target& target_;
  const CompileOptions& options_;
  PassOptions passes_;
  PlanOptions planning_;
};

// What is rounded between kernels depends on which kernels there are; a softmax over padded keys on how many.
void require_row_invariance(const Target& target, const CompileOptions& options) {
  const auto refuse = [](const std::string& reason) {
    throw UsageError("engine.row_invariant: " + reason);
  };
  if (!target.offers_row_invariance)
    refuse(
        fmt::format("the {} device has no such kernels; engine.row_invariant=false", target.name));
  if (options.precision != DType::f32)
    refuse(fmt::format("rows are alike in f32 alone, not in {}; engine.precision=fp32",
                       dtype_name(options.precision)));
  if (options.tf32) refuse("rows are alike in f32 alone, not in tf32; engine.precision=fp32");
  if (options.decomposed.contains("attention") || options.decomposed.contains("packed_attention"))
    refuse("needs attention's own kernel; engine.attention=tiled");
}

void require_tf32(const Target& target) {
  if (!target.offers_tf32)
    throw UsageError(
        fmt::format("engine.precision=tf32: it is how the tensor cores of NVIDIA's cards round "
                    "fp32, and the {} "
                    "device has none; engine.precision=fp32 or bf16, or engine.device=cuda",
                    target.name));
}

void require_fp8(const Target& target) {
  if (!target.why_no_fp8.empty())
    throw UsageError(fmt::format(
        "engine.fp8=true: the {} device multiplies no 8-bit floats: {}; engine.fp8=false",
        target.name, target.why_no_fp8));
}

}  // namespace

Target compile_target(const Device& device, const CompileOptions& options) {
  Target target = device.target();
  target.keeps_derived_weights = true;
  target.copies_frozen_weights = options.copies_frozen_weights;
  target.precision = options.precision;
  if (options.tf32) require_tf32(target);
  target.tf32 = options.tf32;
  if (options.fp8) require_fp8(target);
  target.fp32_scopes = options.fp32_scopes;
  if (options.row_invariant) require_row_invariance(target, options);
  target.row_invariant = options.row_invariant;
  target.cublaslt = options.cublaslt && target.offers_cublaslt;
  target.recompute = options.recompute;
  target.moments_in_host = device.facts().moments_in_host;
  for (const std::string& op : options.decomposed) target.native_ops.erase(&get_op(op));
  target.compile = options.compile;
  if (options.compile == CompileEffort::off) {
    // Every op has a reference, composites too; and no kernel asks for epilogues or prepacked operands.
    target.native_ops.clear();
    target.epilogues = {};
    target.packing = {};
  }
  return target;
}

Plan compile_plan(const Graph& graph, const Device& device, Compiler& compiler,
                  const CompileOptions& options, CompileReport* report) {
  const Target target = compile_target(device, options);
  compiler.compile_for(target);
  CompileReport own;
  CompileReport& record = report ? *report : own;
  Compilation compilation(device.facts(), compiler, target, options);
  Clock::time_point start = Clock::now();
  const PlanStore store(options.passes.dump ? "" : options.plan_folder);
  const std::string key = store.key(graph, target, options);
  if (std::optional<Graph> kept = store.find(key)) {
    record.plan_was_kept = true;
    record.passes_seconds = seconds_since(start);
    start = Clock::now();
    Plan plan = compilation.plan(std::move(*kept));
    compilation.reuse_memory_at_once(plan);
    compilation.use_fewer_thread_groups(plan);
    record.plan_seconds = seconds_since(start);
    return plan;
  }
  Graph optimised = run_passes(graph, target, options.passes, &record.passes);
  record.passes_seconds = seconds_since(start);
  start = Clock::now();
  Plan plan = compilation.plan(std::move(optimised));
  compilation.reuse_memory_at_once(plan);
  compilation.do_without_faster_passes(graph, plan, record.passes);
  const bool may_recompute = options.recompute == Recompute::automatic &&
                             !options.passes.disabled.contains("rematerialize");
  if (exceeds(plan, options) && !(may_recompute && compilation.recompute_a_little(plan))) {
    compilation.use_fewer_thread_groups(plan);
    if (may_recompute && exceeds(plan, options)) compilation.recompute(plan);
  }
  store.put(key, plan.graph);
  record.plan_seconds = seconds_since(start);
  return plan;
}

}  // namespace fullbore
