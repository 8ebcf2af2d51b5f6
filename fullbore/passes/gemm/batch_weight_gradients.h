#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Makes one matmul of the many that are added up where a matrix is shared: the gradient of a weight
/// that a loop's iterations, or several places of a model, use.
///
/// - Matmuls that contract rows, in a loop that carries their sum: the loop stacks the rows instead, and
///   one matmul behind it contracts those of all iterations. Rows that the loop reads as slices are there.
/// - The same at several places of a graph, on rows that are copied behind one another.
/// - Matmuls at several places that share an operand: the others are added up first, and multiplied
///   once. So is the gradient of what all steps of an unrolled recursion read of a fixed context.
///
/// It pays for few rows against a large matrix (recurrences, small batches), whose matmuls spend their
/// time on the sum: rows are gathered where they are a fraction of its bytes. Matmuls of many rows are as
/// fast alone, and take no memory for rows. And a loop's stacked rows may take no more memory than its
/// sliced ones: loops that keep nothing per iteration are there to save memory (accumulation, the chunks of an
/// output head). Under a limit of memory that the plan does not keep to, the compiler leaves this pass
/// out (runtime/compile.h).
///
/// Sums of iterations that were not made stay exact, for the rows that a loop stacks for them are zero; rows
/// from elsewhere are taken only where they are too, or where every iteration is made.
///
/// before  primitives, equal nodes merged, nothing in loops that every iteration computes alike
/// after   no sum has matmuls that it would pay to gather
/// here    before gemm_accumulation, which makes the best of the matmuls that stay in loops
Graph batch_weight_gradients(const Graph& graph, const Target& target);

}  // namespace fullbore
