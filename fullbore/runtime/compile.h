#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/passes/pass.h"
#include "fullbore/plan/plan.h"

namespace fullbore {

struct CompileOptions {
  PassOptions passes = {};
  bool reuse_memory = true;
  DType precision = DType::f32;  ///< or bf16, f16: passes/precision/lower_precision.h
  /// Matmuls of f32 round their operands to tf32: of precision f32, on devices that offer it (Target).
  bool tf32 = false;
  /// Graphs have matmuls of 8-bit floats (train/fp8_matmuls.h): of devices that offer them (Target).
  bool fp8 = false;
  std::vector<std::string> fp32_scopes = {};  ///< patterns of modules that stay f32
  std::set<std::string> decomposed = {};      ///< composites that get no kernel of their own
  /// The bits of a row are the same however many rows stand beside it and however long the step is. f32, on devices that
  /// offer it (Target), with attention's kernel of its own.
  bool row_invariant = false;
  /// Matmuls by cuBLASLt, on a card of a machine that has it; else by the device's own kernels, which is told (on_notices).
  bool cublaslt = false;
  CompileEffort compile = CompileEffort::full;
  Recompute recompute = Recompute::off;  ///< passes/memory/rematerialize.h
  /// The planned peak to stay within, as far as that is possible; 0: any. A plan that takes more is made without batched weight
  /// gradients, then without prepacked operands, and then, under Recompute::automatic, with values rematerialized; where that is
  /// not asked for or much work, first with fewer thread groups in parallel loops.
  int64_t memory_bytes = 0;
  bool must_fit = false;  ///< MemoryError from whoever prepares a program that exceeds memory_bytes
  bool keeps_snapshot = false;        ///< is there to be a second copy of the State within them?
  int64_t lent_state_bytes = 0;       ///< of the State, in files, where they are read: not copied
  bool copies_frozen_weights = true;  ///< Target has it
  /// Folder of plans that earlier compilations of the same graph, for the same target, by the same
  /// build made: what they say is taken as it stands. "": none.
  std::string plan_folder = {};
  /// Told, by whichever thread prepares a program, of its nodes without a kernel of their own; not where there are none.
  std::function<void(std::span<const KernelFallback>)> on_fallbacks = {};
  /// Likewise, of what was asked for and is done otherwise, a line each (CompileReport).
  std::function<void(std::span<const std::string>)> on_notices = {};
};

/// What passes are told of a device and what is asked for. UsageError for row_invariant with what it does not hold for,
/// and for tf32 or fp8 on a device that has none.
Target compile_target(const Device& device, const CompileOptions& options);

/// Where a compilation's time went.
struct CompileReport {
  bool plan_was_kept = false;  ///< in plan_folder: no pass ran
  double passes_seconds = 0;
  double plan_seconds = 0;  ///< kernels included
  std::vector<PassRecord> passes;
  std::vector<KernelFallback> fallbacks = {};
  std::vector<std::string> notices = {};  ///< "engine.cublaslt: no library ...: own kernels"
};

/// Passes and planning. `report` says nothing of fallbacks: they are known once the compiler has finished. The plan's
/// kernels can run once the compiler, one of the device's, has finished (Compiler::finish), which is for the caller to
/// ask: plans that are only looked at need no code.
Plan compile_plan(const Graph& graph, const Device& device, Compiler& compiler,
                  const CompileOptions& options, CompileReport* report = nullptr);

}  // namespace fullbore
