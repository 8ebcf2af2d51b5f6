#pragma once
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fullbore/runtime/planned_programs.h"

namespace fullbore {

/// What of a program needs no State: its plan, whose kernels can run.
struct PreparedProgram {
  Plan plan;
  std::optional<Plan>
      copies;  ///< makes what the plan reads copies of, if it reads any (deriving_graph())
  CompileReport report = {};
  bool was_planned = false;  ///< before it was asked for
};

PreparedProgram prepare_program(const Graph& graph, Device& device, const CompileOptions& options);

/// Of several graphs, on as many threads as there are processors: the passes of one take one thread, and code that
/// several need is made once. Results in the graphs' order; what any of them throws, the first one in that order.
/// `progress`, if there is one, is called by this thread now and then with the number of those that are ready. What
/// `planned` has of them is taken, and not planned again; it may be null.
std::vector<PreparedProgram> prepare_programs(std::span<const Graph* const> graphs, Device& device,
                                              const CompileOptions& options,
                                              const std::function<void(size_t done)>& progress = {},
                                              PlannedPrograms* planned = nullptr);

}  // namespace fullbore
