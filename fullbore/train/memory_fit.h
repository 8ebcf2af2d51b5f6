#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/train/config.h"
#include "fullbore/train/process_memory.h"

namespace fullbore {

class PlannedPrograms;

/// What a run with some settings would take, told by its plans alone: nothing is allocated or compiled.
struct PlannedRun {
  int64_t bytes = 0;   ///< planned peak of all programs, with the copy that background saves need
  double seconds = 0;  ///< roofline time of a training step
  int64_t rows =
      0;  ///< sequences that every shape of batch has a multiple of: parts must divide them
  /// What the process takes beside that, at most; nothing where the device has memory of its own.
  ProcessMemory process = {};
  int64_t parallel = 1;  ///< microbatches side by side, where engine.parallel_microbatches is auto
  /// How many of them memory is planned for at once; fewer than threads would take where the budget is tight, which
  /// costs time and changes no bits.
  int64_t thread_groups = 1;
  /// Of frozen weights that are read where they lie, in files: background saves do not copy them.
  int64_t lent_state_bytes = 0;
  /// Pinned memory of the host, where engine.offload keeps moments there; beside `bytes`, which are the device's.
  int64_t host_bytes = 0;
  /// What was planned for it, for the run to go on with; null where it plans anew.
  std::shared_ptr<PlannedPrograms> programs = {};

  /// The bound of what is resident: this, and not the plan alone, is held against the budget.
  int64_t resident_bytes() const { return bytes + process.bytes(); }
};
using RunPlanner = std::function<PlannedRun(const Config&)>;

/// How runs are planned.
struct RunPlanning {
  RunPlanner here;  ///< on this machine, as engine.threads says
  /// As little as any machine takes: by one thread, on one processor. What is to be the same everywhere follows from
  /// it.
  RunPlanner least = here;
  /// Numbers of microbatches that a job can be made in, the best one first. Where there are none, microbatches are no
  /// matter.
  std::function<std::vector<int64_t>(const Config&)> parallel_counts = {};
  /// Would a batch in microbatches be another step than the whole batch (statistics of nn::batch_norm)? Then none are
  /// made that nobody asked for, in whatever budget. Without it: no.
  std::function<bool(const Config&)> needs_whole_batch = {};
};

/// Bytes of what a run works in: what is free of the memory of engine.device, or where that has none of its own what
/// the process may use.
int64_t run_memory_bytes(const Config& config);
/// Bytes that a run may have resident, its process included where it works in the host's memory: engine.memory_budget,
/// "6GiB", "1500MB" or a share of run_memory_bytes() such as "0.5"; nine tenths of that where it is empty. UsageError
/// for anything else.
int64_t memory_budget_bytes(const Config& config);
/// Is it a number of bytes, the same on every machine?
bool budget_is_of_the_job(const Config& config);
/// What of the budget is left to plans beside such a process: CompileOptions::memory_bytes. A step leaves a little to
/// what the evaluation beside it has of its own: its batch and its results.
int64_t plan_memory_bytes(const Config& config, const ProcessMemory& process);

/// The settings with which the run keeps to its budget.
struct FittedConfig {
  Config config;  ///< has no `auto` for batch_size, accumulate and microbatches any more
  PlannedRun run;
  /// What was decided, for people: "train.batch_size=96: the largest within 3.00 GiB".
  std::vector<std::string> decisions;
};

/// Solves what is `auto`:
///
/// - engine.parallel_microbatches, the first of RunPlanning::parallel_counts, or where engine.memory_budget is a number
///   of bytes that those cannot keep to on any machine, the first that can. So the job and its budget decide, and
///   neither threads nor memory at hand;
/// - engine.parallel_microbatches and engine.accumulate are 1 where RunPlanning::needs_whole_batch says so, and decisions
///   tell it;
/// - train.batch_size, the largest that divides as engine.accumulate, engine.parallel_microbatches and
///   optim.noise_scale ask, by bisection over plans; engine.accumulate, the fewest parts.
///
/// A run that does not fit is changed in the ways that engine.degrade names, in that order, or refused: MemoryError
/// with the three cheapest changes that would make it fit, their cost, and the budget that would do.
/// engine.recompute=auto may recompute as much as it takes.
FittedConfig fit_memory(const Config& config, const RunPlanning& planning);

}  // namespace fullbore
