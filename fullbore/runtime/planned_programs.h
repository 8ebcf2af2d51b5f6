#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/runtime/compile.h"

namespace fullbore {

/// What passes and planning make of a graph. No code is made yet.
struct PlannedProgram {
  Plan plan;
  std::unique_ptr<Compiler> compiler;  ///< of the plan's kernels, to be finished
  CompileReport report = {};
};

PlannedProgram plan_program(const Graph& graph, Device& device, const CompileOptions& options);

/// Programs that were planned to learn what they take, for whoever prepares them afterwards. Each is handed over once.
class PlannedPrograms {
 public:
  /// `program`: of plan_program() for the rest.
  void add(Graph graph, const Device& device, const CompileOptions& options,
           PlannedProgram program);
  /// What plan_program() would make of these; nothing where no program was planned of such a graph for such a device with
  /// such options, or where passes are to be dumped. Of a device that works in the host's memory: there a compiler is no
  /// part of one device alone.
  std::optional<PlannedProgram> take(const Graph& graph, const Device& device,
                                     const CompileOptions& options);
  /// Lets go of what nobody has taken.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Graph graph;
    std::string settings;
    PlannedProgram program;
  };
  std::vector<Entry> entries_;
};

}  // namespace fullbore
