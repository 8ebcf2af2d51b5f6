#include "fullbore/runtime/planned_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/ir/same_graph.h"
#include "fullbore/runtime/plan_store.h"

namespace fullbore {
namespace {

/// All that a plan follows from but the graph.
std::string settings_of(const Device& device, const CompileOptions& options) {
  const auto& [name, hardware, alignment, group_alignment, workers, moments_in_host] =
      device.facts();
  return fmt::format("{} on {} {} workers {} alignment {} {} moments {}",
                     settings_text(compile_target(device, options), options), name, hardware,
                     workers, alignment, group_alignment, moments_in_host);
}

}  // namespace

PlannedProgram plan_program(const Graph& graph, Device& device, const CompileOptions& options) {
  PlannedProgram program;
  program.compiler = device.compiler();
  program.plan = compile_plan(graph, device, *program.compiler, options, &program.report);
  return program;
}

void PlannedPrograms::add(Graph graph, const Device& device, const CompileOptions& options,
                          PlannedProgram program) {
  entries_.push_back({std::move(graph), settings_of(device, options), std::move(program)});
}

std::optional<PlannedProgram> PlannedPrograms::take(const Graph& graph, const Device& device,
                                                    const CompileOptions& options) {
  if (entries_.empty() || options.passes.dump) return std::nullopt;
  const std::string settings = settings_of(device, options);
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return entry.settings == settings && same_graph(entry.graph, graph);
  });
  if (found == entries_.end()) return std::nullopt;
  PlannedProgram program = std::move(found->program);
  entries_.erase(found);
  return program;
}

}  // namespace fullbore
