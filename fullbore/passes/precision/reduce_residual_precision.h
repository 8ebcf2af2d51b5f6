#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Stores in `target.precision` what a loop stacks for other loops to read row by row: the
/// activations that a recurrence or recursion keeps for its gradient, by far the most of what such a
/// model keeps. Rows are rounded as they are stacked and widened as they are read; what an iteration hands
/// to the next one keeps its precision. Nothing changes where the target asks for f32.
///
/// before  dead results of loops are dropped
/// after   no f32 result that a loop stacks is read by nothing but slices of other loops, except: rows
///         of few elements beside the loop's longest (norms, row maxima, sums), rows from a scope
///         in `target.fp32_scopes`, what islands of f32 (Fp32Scope) make or read, what a softmax subtracts from (softmax_values.h), and what the segments of a
///         loop begin with
/// here    after merging and removal, which settle what loops stack; before fusion, which takes the
///         casts into the kernels around them. reduce_intermediate_precision does the same for what kernels hand to
///         one another within a step or an iteration
Graph reduce_residual_precision(const Graph& graph, const Target& target);

}  // namespace fullbore
