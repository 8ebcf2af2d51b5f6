#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "fullbore/ops/ops.h"

namespace fullbore {

/// What maps a tile of rows: [T, ...] each -> [T, ...] each, every row of a result from the same row of the operands.
using TileFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& tile)>;

/// `body` on the first `count` of C rows, tile by tile: a counted loop over ceil(count / T) tiles, so that time, forward and
/// backward, goes by the rows that are alive. Tensors of enclosing scopes that `body` uses are captured.
/// Belongs to the innermost graph of count and rows.
///
/// count: i64 []; more than C is C, less than 0 is 0. rows: [C, ...] each, of any dtype, at least one.
/// T is the largest divisor of C that is no more than `tile_rows` (at least 1): no row is padded, so choose a capacity that
/// tiles divide. -> [C, ...] each; rows from `count` on are zero (false).
///
/// What the other rows of `rows` hold, NaN too, reaches neither results nor gradients: in the last tile `body` sees zeros in
/// their place, of which it must make finite values and derivatives. Gradients of `rows` are zero there. The gradient of
/// what is captured is summed up tile by tile, that of a matmul's weight by the matmul itself (pass gemm_accumulation).
/// UsageError where extents differ, and where a result has not T rows.
std::vector<Tensor> map_rows(Tensor count, int64_t tile_rows, const std::vector<Tensor>& rows,
                             const TileFunction& body, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
