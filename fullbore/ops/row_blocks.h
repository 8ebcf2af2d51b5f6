#pragma once
#include <cstdint>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

/// Fails unless the call has so many operands, of which the first are hidden [N,C], weight [V,C] of its dtype and targets
/// integer [N], and an attribute `rows` of 1 or more.
void require_linear_rows(const OpCall& call, size_t operands);

/// Calls that it refuses, with attributes that are right but for `no_rows`, which makes 0 rows at a time: hidden f32[3,4],
/// weight f32[5,4], targets i32[3].
std::vector<ErrorSample> linear_rows_error_samples(const Attributes& right,
                                                   const Attributes& no_rows);

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
