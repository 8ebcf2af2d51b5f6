#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/compiled_step.h"

namespace fullbore {

/// A step that was not finite, with all that is needed to make it again.
struct BadStep {
  int64_t step = 0;            ///< its number, from 1
  Graph graph;                 ///< as traced
  std::string device = "cpu";  ///< name of the device that it was run on
  CompileOptions compile;
  std::map<std::string, double> results;  ///< what it returned: loss, gradient_norm, ...
  std::string finding;                    ///< of first_non_finite(); "" if none was found
};

/// Writes <folder>/step-<N>, a folder like a checkpoint: weights, optimizer and moving averages of the State
/// that the step began with, the batch, the graph's text and report.json. Returns its path.
///
/// state  as it is after the step, which has left it alone but for its counter `step`
/// batch  the step's, one pointer per batch input of the graph
/// DataError if it cannot be written.
std::string save_bad_step(const std::string& folder, const BadStep& step, const State& state,
                          std::span<const void* const> batch);

/// The same for a step just made, looked into first. Returns what there is to say about it.
///
/// number   the step's, from 1
/// results  what it returned
/// state    as it is after the step, which has left it alone but for its counter; unchanged in the end
std::string keep_bad_step(const std::string& folder, int64_t number, const CompiledStep& step,
                          const StepResults& results, State& state,
                          std::span<const void* const> batch, const CompileOptions& options);

/// The first parameter that is not finite, as "parameter 'head.weight' f32[8,8]"; "" if all are. It reads them all.
std::string non_finite_parameter(const State& state);

/// A saved step, read back.
struct LoadedStep {
  BadStep step;
  std::vector<Literal> inputs;  ///< one per graph input, State and batch
};
/// DataError names what is missing, damaged, or does not fit the graph.
LoadedStep load_bad_step(const std::string& path);

/// Finds the first operation that made a number that is not finite. Runs the graph that `options` lead to, its fused
/// kernels apart into their members, with a probe behind every value, one number each and within loops one for each
/// iteration, so that memory stays near that of a step. From a loss or gradient norm that is not finite (or, if both
/// are, from any result) it goes back along values that are not, through loops, to the nodes that made NaN out of
/// operands without, or an infinity out of finite operands; to a value of the batch or of State that was not finite
/// before the step; and names the one that comes first: op, module, line of model code, backward pass or not,
/// microbatch, iteration of each loop. Infinities that are constants (masks), and those that no bad result follows
/// from, are nobody's fault. Where the members apart are finite and their kernel is not, it names the kernel.
/// "" if everything is finite. State is not changed.
std::string first_non_finite(const Graph& graph, State& state, std::span<const void* const> batch,
                             const CompileOptions& options);

}  // namespace fullbore
