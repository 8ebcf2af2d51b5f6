#pragma once
#include "fullbore/ir/op_handle.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

namespace op {
inline const OpHandle update_rows{"update_rows"};
}  // namespace op

/// x with rows replaced by index.
///
/// x        [N, ...]
/// updates  [...I, ...]  of x's dtype: rows
/// indices  [...I]       integer, which rows of x they become; one out of [0, N) writes nothing, and of several updates
///                       of a row the last counts
/// -> y     as x. Where x is State and y its new value it is done in place: a pool of keys costs what is written.
///
/// Gradient: dx is dy with zeros in the rows that were written; dupdates are dy's rows, zeros where another one counted.
/// Errors:   UsageError if shapes or dtypes do not fit.
/// Cost:     the bytes of updates and indices, twice; and those of x where it cannot be done in place.
/// Example:  pool = update_rows(pool, keys, places)
Tensor update_rows(Tensor x, Tensor updates, Tensor indices, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
