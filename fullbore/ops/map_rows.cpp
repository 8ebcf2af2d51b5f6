#include "fullbore/ops/map_rows.h"

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

int64_t tile_of(int64_t capacity, int64_t tile_rows) {
  int64_t tile = std::clamp<int64_t>(tile_rows, 1, capacity);
  while (capacity % tile != 0) --tile;
  return tile;
}

// Rows of a tile that are not alive become zeros; so does what comes back to them.
Tensor masked(Tensor alive, Tensor x) {
  for (int axis = 1; axis < x.rank(); ++axis) alive = expand_dims(alive, axis);
  return x.dtype() == DType::boolean ? logical_and(alive, x) : select(alive, x, 0.0);
}

}  // namespace

std::vector<Tensor> map_rows(Tensor count, int64_t tile_rows, const std::vector<Tensor>& rows,
                             const TileFunction& body, SourceLoc loc) {
  require_tensor("map_rows", "count", count, loc);
  if (count.type() != TensorType{DType::i64, {}})
    throw UsageError(fmt::format("map_rows: needs count i64[], got {}", count.type().text()), loc);
  if (rows.empty()) throw UsageError("map_rows: needs at least one tensor of rows", loc);
  for (const Tensor& x : rows) {
    require_tensor("map_rows", "rows", x, loc);
    if (x.rank() == 0 || x.dim(0) != rows[0].dim(0) || x.dim(0) == 0)
      throw UsageError(fmt::format("map_rows: rows {} beside {}, as many were expected, at least 1",
                                   x.type().text(), rows[0].type().text()),
                       loc);
  }
  const int64_t capacity = rows[0].dim(0);
  const int64_t tile = tile_of(capacity, tile_rows);
  const int64_t tiles = capacity / tile;
  std::vector<Tensor> sliced;
  for (const Tensor& x : rows) {
    const Shape row = x.shape().without(0);
    sliced.push_back(reshape(x, row.inserted(0, tile).inserted(0, tiles), loc));
  }
  const Tensor made = (count + static_cast<double>(tile - 1)) / static_cast<double>(tile);
  std::vector<Tensor> operands = sliced;
  operands.push_back(count);
  const LoopResult result = loop(
      innermost_builder("map_rows", operands, loc), {}, sliced,
      {.iterations = tiles, .count = made},
      [&](const LoopBody& iteration) {
        const Tensor row = iota(iteration.index.builder(), {DType::i64, {tile}}, 0) +
                           iteration.index * static_cast<double>(tile);
        const Tensor alive = less(row, count);
        std::vector<Tensor> live;
        for (const Tensor& x : iteration.slices) live.push_back(masked(alive, x));
        IterationResults results;
        for (const Tensor& y : body(live)) {
          require_tensor("map_rows", "a result", y, loc);
          if (y.rank() == 0 || y.dim(0) != tile)
            throw UsageError(
                fmt::format("map_rows: a result {} of tiles of {} rows", y.type().text(), tile),
                loc);
          results.stacked.push_back(masked(alive, y));
        }
        return results;
      },
      loc);
  std::vector<Tensor> results;
  for (const Tensor& y : result.stacked)
    results.push_back(reshape(y, y.shape().without(0).without(0).inserted(0, capacity), loc));
  return results;
}

}  // namespace fullbore
