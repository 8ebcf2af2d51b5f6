#include "fullbore/runtime/compile.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "fullbore/passes/memory_lowering.h"
#include "fullbore/runtime/plan_store.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The estimate that recomputation works with knows no scratch memory and no gaps: what the plan takes
// beyond the limit is taken off it until the plan fits or nothing more can be given up.
constexpr int kMostAttempts = 6;

int64_t run_bytes(const Plan& plan, const CompileOptions& options) {
  return plan.peak_bytes() + (options.keeps_snapshot ? plan.state_bytes : 0);
}

Plan plan_within(Graph graph, Backend& backend, Target target, const CompileOptions& options,
                 const PlanOptions& planning) {
  Plan plan = make_plan(graph, backend, planning);
  int64_t estimate = estimated_arena_bytes(graph);
  for (int i = 0; i < kMostAttempts && run_bytes(plan, options) > options.memory_bytes; ++i) {
    target.arena_bytes =
        std::max<int64_t>(1, estimate - (run_bytes(plan, options) - options.memory_bytes));
    Graph smaller = run_pass("recompute", graph, target);
    const int64_t reached = estimated_arena_bytes(smaller);
    Plan attempt = make_plan(std::move(smaller), backend, planning);
    const bool better = attempt.peak_bytes() < plan.peak_bytes();
    if (better) plan = std::move(attempt);
    if (!better || reached > target.arena_bytes) break;
    estimate = reached;
  }
  return plan;
}

}  // namespace

Target compile_target(const Backend& backend, const CompileOptions& options, int workers) {
  Target target = backend.target();
  target.threads = workers;
  target.precision = options.precision;
  target.fp32_scopes = options.fp32_scopes;
  target.recompute = options.recompute;
  for (const std::string& op : options.decomposed) target.claimed.erase(op);
  return target;
}

Plan compile_plan(const Graph& graph, Backend& backend, const CompileOptions& options, int workers,
                  CompileReport* report) {
  const Target target = compile_target(backend, options, workers);
  CompileReport own;
  CompileReport& record = report ? *report : own;
  const PlanOptions planning = {.workers = workers, .reuse_memory = options.reuse_memory};
  Clock::time_point start = Clock::now();
  const PlanStore store(options.passes.dump ? "" : options.plan_folder);
  const std::string key = store.key(graph, target, options);
  if (std::optional<Graph> kept = store.find(key)) {
    record.plan_was_kept = true;
    record.passes_seconds = seconds_since(start);
    start = Clock::now();
    Plan plan = make_plan(std::move(*kept), backend, planning);
    record.plan_seconds = seconds_since(start);
    return plan;
  }
  Graph optimised = run_passes(graph, target, options.passes, &record.passes);
  record.passes_seconds = seconds_since(start);
  start = Clock::now();
  const bool limited = options.memory_bytes > 0 && options.recompute == Recompute::automatic &&
                       !options.passes.disabled.contains("recompute");
  Plan plan = limited ? plan_within(std::move(optimised), backend, target, options, planning)
                      : make_plan(std::move(optimised), backend, planning);
  store.put(key, plan.graph);
  record.plan_seconds = seconds_since(start);
  return plan;
}

}  // namespace fullbore
