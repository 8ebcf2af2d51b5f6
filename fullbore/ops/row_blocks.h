#pragma once
#include <cstdint>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

/// Fails unless the call has so many operands, of which the first are hidden [N,C], weight [V,C] of its dtype and targets
/// integer [N], and an attribute `rows` of 1 or more.
void require_linear_rows(const OpCall& call, size_t operands);

/// Rows cut into blocks of equal size, so that what is made of them, such as logits, exists a block at a time. Behind the
/// last row the last block may have rows of zeros.
class RowBlocks {
 public:
  /// Blocks of at most `most` rows; up to twice as many if they then divide the rows.
  RowBlocks(int64_t rows, int64_t most);

  int64_t count() const { return count_; }
  bool padded() const { return count_ * block_rows_ > rows_; }
  /// [N, ...] -> [blocks, rows of one, ...]
  Tensor cut(Tensor rows) const;
  /// The same of targets, integer [N]; those behind the last row are -1, i64.
  Tensor cut_targets(Tensor targets) const;
  /// [blocks, rows of one, ...] -> [N, ...]
  Tensor joined(Tensor blocks) const;

 private:
  int64_t rows_;
  int64_t count_;
  int64_t block_rows_;
};

}  // namespace fullbore
