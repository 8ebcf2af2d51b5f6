#pragma once
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// Stores in `target.precision` the f32 values that elementwise kernels hand to one another, so that
/// activations take half the bytes; within a kernel everything stays f32. Nothing changes where the
/// target asks for f32.
///
/// before  fused: what one kernel makes and others read is a node's result
/// after   no f32 value with an element per element of a kernel's space is read by kernels alone,
///         except: what is kept (pinned_values.h), what a loop, an index op or a sort reads, numbers of
///         whole rows or columns (norms, row maxima, sums), fewer elements than `target.narrow_from`, and
///         what comes from a scope in `target.fp32_scopes` or an island of f32 (Fp32Scope), or is read by one
/// here    after fusion: only now is it known which values reach memory. Rounded anywhere earlier, values that
///         never leave a register would lose bits too
Graph reduce_intermediate_precision(const Graph& graph, const Target& target);

}  // namespace fullbore
