#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/runtime/program.h"

namespace fullbore {

/// Runs a graph once on a device: compiles it, fills State and batch from `inputs` (one literal per
/// graph input, those of copies left out), replays, and returns one literal per graph output (State outputs from
/// the State).
std::vector<Literal> run_on_device(const Graph& graph, std::span<const Literal> inputs,
                                   const std::shared_ptr<Device>& device,
                                   const CompileOptions& options);

/// What the interpreter makes of the parameters that the graph reads copies of, in the order of these inputs, which
/// are its last ones; `inputs` are those before.
std::vector<Literal> copies_of(const Graph& graph, std::span<const Literal> inputs);

/// The same graph with every value of its outermost level as an output, so that each can be seen.
Graph with_all_values(const Graph& graph);

/// Compares a device with the interpreter node by node: runs `graph` with every value visible, then
/// evaluates each node's reference on the device's own operands, so that errors do not accumulate
/// and each node meets the bound of its op alone (ulps * eps * |y| + eps * magnitude). Nodes with a
/// body (loop, fused) are bounded by stochastic arithmetic: their bodies are evaluated in double
/// with every intermediate result perturbed by its rounding, several times, and the result may be
/// a few times further from the exact one than the perturbed ones are (Parker 1997, "Monte Carlo
/// arithmetic").
///
/// Numbers that are finite in the reference alone for want of a dtype's limits are none: it overflows where the dtype
/// does, and where both are not finite they agree.
///
/// Passes are those of `options`. `progress`, if set, is told the number of nodes done, of all.
/// Returns "" or the first node where they part: element, values, bound, node.
std::string first_difference(const Graph& graph, std::span<const Literal> inputs,
                             const std::shared_ptr<Device>& device, const CompileOptions& options,
                             const std::function<void(size_t done, size_t nodes)>& progress = {});

}  // namespace fullbore
