#include "fullbore/ops/row_blocks.h"

#include <algorithm>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/rules.h"

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

void require_linear_rows(const OpCall& call, size_t operands) {
  if (const int64_t rows = require_attribute<int64_t>(call, "rows"); rows < 1)
    call.fail(fmt::format("makes 1 row of logits at a time or more, not {}", rows));
  require_inputs(call, operands);
  require_dtype(call, 0, "hidden", DTypeSet::floating);
  require_rank(call, 0, "hidden", 2);
  require_rank(call, 1, "weight", 2);
  require_same_dtype(call, 0, "hidden", 1, "weight");
  require_dtype(call, 2, "targets", DTypeSet::integer);
  const TensorType& hidden = call.inputs[0];
  const TensorType& weight = call.inputs[1];
  if (hidden.shape[1] != weight.shape[1])
    call.fail(fmt::format("{} and {} differ in their last extent", operand_text("hidden", hidden),
                          operand_text("weight", weight)));
  if (call.inputs[2].shape != Shape{hidden.shape[0]})
    call.fail(fmt::format("{} needs a target for each row, got {}", operand_text("hidden", hidden),
                          operand_text("targets", call.inputs[2])));
}

std::vector<ErrorSample> linear_rows_error_samples(const Attributes& right,
                                                   const Attributes& no_rows) {
  const TensorType hidden{DType::f32, {3, 4}};
  const TensorType weight{DType::f32, {5, 4}};
  const TensorType targets{DType::i32, {3}};
  return {
      {"two widths",
       {hidden, {DType::f32, {4, 5}}, targets},
       right,
       "hidden f32[3,4] and weight f32[4,5] differ in their last extent"},
      {"two dtypes",
       {hidden, {DType::bf16, {5, 4}}, targets},
       right,
       "hidden f32[3,4] and weight bf16[5,4] differ in dtype"},
      {"a target too many",
       {hidden, weight, {DType::i32, {4}}},
       right,
       "hidden f32[3,4] needs a target for each row, got targets i32[4]"},
      {"targets as probabilities",
       {hidden, weight, {DType::f32, {3}}},
       right,
       "needs integer targets, got f32[3]"},
      {"rows not in one axis",
       {{DType::f32, {3, 1, 4}}, weight, targets},
       right,
       "needs hidden of rank 2, got f32[3,1,4]"},
      {"no rows at a time",
       {hidden, weight, targets},
       no_rows,
       "makes 1 row of logits at a time or more, not 0"},
  };
}

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
