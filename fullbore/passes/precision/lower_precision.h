#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Lets contractions read `target.precision`, bf16 or f16, where the model says f32; their matmuls
/// are summed in f32 as ever. Nothing changes where the target asks for f32 alone.
///
/// With `target.tf32` values and casts stay as they are, and each matmul of f32 gets the attribute tf32: its kernel may
/// round operands to 10 bits of mantissa. Attention and convolutions stay f32. What follows is of bf16 and f16.
///
/// before  composites without a kernel are expanded, so that every contraction is in sight
/// after   each f32 contraction reads low operands, each by a cast of its own, and its result is low
///         and cast back, except where it would be kept: what goes into State or into a result
///         element by element (gradients of parameters, recurrent states, logits that are asked for)
///         or is accumulated from iteration to iteration stays f32 from the contraction's own sums on, and so
///         does what a softmax or its gradient subtracts from (softmax_values.h)
/// here    before folding, simplifying, code motion and merging: they move casts to where fewest bytes
///         are moved, take those of weights out of loops, and make equal ones one
///
/// A contraction with State that the model remembers (caches) stays f32 where it does few multiplications with each of
/// its elements, as a token's attention does: to cast all of that would take longer than to read it.
/// Attention to pages of a pool reads bf16 queries where the pool is bf16, and stays f32 elsewhere.
/// All other arithmetic stays f32: norms, softmax, losses, sums, and what the optimiser does with its
/// f32 master weights. So do contractions in scopes that match `target.fp32_scopes`, in islands of f32 (Fp32Scope) and in
/// the optimiser's own scope; what an island reads of others is f32 from their sums on. Micikevicius et al. 2018, arXiv:1710.03740, section 3.
Graph lower_precision(const Graph& graph, const Target& target);

}  // namespace fullbore
