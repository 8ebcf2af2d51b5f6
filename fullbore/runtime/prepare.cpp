#include "fullbore/runtime/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/start_thread.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/base/unused_memory.h"
#include "fullbore/passes/gemm/derived_weights.h"

namespace fullbore {

namespace {

void check_fits(const Plan& plan, int64_t allowed) {
  if (plan.peak_bytes() <= allowed) return;
  const auto size = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  throw MemoryError(
      fmt::format("memory: '{}' would take {}, {} of it for what it computes and the rest for "
                  "weights and States; {} are allowed "
                  "beside the process (engine.memory_budget). Less at a time takes less: a smaller "
                  "batch, shorter or fewer texts.",
                  plan.graph.name(), size(plan.peak_bytes()),
                  size(plan.peak_bytes() - plan.state_bytes - plan.derived_bytes), size(allowed)));
}

PreparedProgram finish_program(PlannedProgram planned, Device& device,
                               const CompileOptions& options) {
  auto& [plan, compiler, report] = planned;
  if (options.must_fit) check_fits(plan, options.memory_bytes);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Plan> copies;
  if (const auto copying = deriving_graph(plan.graph)) {
    // It is made as fast as it would be read from plan_folder, and has no matmul that precision is about.
    const CompileOptions as_it_is{.passes = {.disabled = {"low_precision_weight_copies"}},
                                  .reuse_memory = options.reuse_memory,
                                  .decomposed = options.decomposed,
                                  .cublaslt = options.cublaslt,
                                  .compile = options.compile};
    copies = compile_plan(*copying, device, *compiler, as_it_is);
  }
  compiler->finish();
  report.fallbacks = compiler->fallbacks();
  if (options.on_fallbacks && !report.fallbacks.empty()) options.on_fallbacks(report.fallbacks);
  report.notices = compiler->notices();
  if (const Target target = device.target(); options.cublaslt && !target.offers_cublaslt)
    report.notices.push_back(
        fmt::format("engine.cublaslt: it is for NVIDIA's cards, and the {} device has kernels of "
                    "its own",
                    target.name));
  if (options.on_notices && !report.notices.empty()) options.on_notices(report.notices);
  report.plan_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {std::move(plan), std::move(copies), std::move(report)};
}

}  // namespace

PreparedProgram prepare_program(const Graph& graph, Device& device, const CompileOptions& options) {
  return finish_program(plan_program(graph, device, options), device, options);
}

std::vector<PreparedProgram> prepare_programs(std::span<const Graph* const> graphs, Device& device,
                                              const CompileOptions& options,
                                              const std::function<void(size_t done)>& progress,
                                              PlannedPrograms* planned) {
  std::vector<std::optional<PlannedProgram>> taken(graphs.size());
  if (planned)
    for (size_t i = 0; i < graphs.size(); ++i)
      taken[i] = planned->take(*graphs[i], device, options);
  std::vector<std::optional<PreparedProgram>> prepared(graphs.size());
  std::vector<std::exception_ptr> problems(graphs.size());
  std::atomic<size_t> next{0};
  std::atomic<size_t> done{0};
  const auto prepare_next = [&] {
    const size_t i = next++;
    if (i >= graphs.size()) return false;
    try {
      prepared[i] = taken[i] ? finish_program(std::move(*taken[i]), device, options)
                             : prepare_program(*graphs[i], device, options);
      prepared[i]->was_planned = taken[i].has_value();
    } catch (...) {
      problems[i] = std::current_exception();
      next = graphs.size();
    }
    ++done;
    return true;
  };
  const size_t threads = options.passes.dump  // which is not asked from several threads
                             ? 1
                             : std::min(static_cast<size_t>(available_processors()), graphs.size());
  {
    const std::vector<std::jthread> helpers = start_helpers(std::max<size_t>(threads, 1) - 1, [&] {
      while (prepare_next()) {
      }
    });
    try {
      do {
        if (progress) progress(done);
      } while (prepare_next());
    } catch (...) {
      next = graphs.size();
      throw;
    }
  }
  for (const std::exception_ptr& problem : problems)
    if (problem) std::rethrow_exception(problem);
  std::vector<PreparedProgram> results;
  for (std::optional<PreparedProgram>& each : prepared) results.push_back(std::move(*each));
  // Of passes and of the code generator; the arena is met next.
  release_free_memory();
  return results;
}

}  // namespace fullbore
