#include "fullbore/ops/row_blocks.h"

#include <algorithm>

#include "fullbore/ops/compose.h"

namespace fullbore {
namespace {

int64_t divide_up(int64_t count, int64_t size) { return (count + size - 1) / size; }

int64_t block_count(int64_t rows, int64_t most) {
  const int64_t fewest = std::max<int64_t>(1, divide_up(rows, most));
  for (int64_t count = fewest; count <= 2 * fewest; ++count)
    if (rows % count == 0) return count;
  return fewest;
}

}  // namespace

RowBlocks::RowBlocks(int64_t rows, int64_t most)
    : rows_(rows), count_(block_count(rows, most)), block_rows_(divide_up(rows, count_)) {}

Tensor RowBlocks::cut(Tensor rows) const {
  const int64_t missing = count_ * block_rows_ - rows_;
  if (missing > 0) rows = pad(rows, 0, 0, missing);
  return reshape(rows, rows.shape().with(0, block_rows_).inserted(0, count_));
}

// In i64, where + 1 overflows for no class.
Tensor RowBlocks::cut_targets(Tensor targets) const {
  return padded() ? cut(as_dtype(targets, DType::i64) + 1.0) - 1.0 : cut(targets);
}

Tensor RowBlocks::joined(Tensor blocks) const {
  const Tensor rows = reshape(blocks, blocks.shape().without(0).with(0, count_ * block_rows_));
  return rows.dim(0) == rows_ ? rows : slice(rows, 0, 0, rows_);
}

}  // namespace fullbore
