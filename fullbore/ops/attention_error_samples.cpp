#include "fullbore/ops/attention.h"

namespace fullbore {
namespace {

Attributes attributes(bool masked, double dropout) {
  return {{"causal", true},
          {"masked", masked},
          {"scale", 0.25},
          {"dropout", dropout},
          {"site", int64_t{0}}};
}

}  // namespace

std::vector<ErrorSample> attention_error_samples() {
  const TensorType q{DType::f32, {2, 4, 5, 8}};
  const TensorType k{DType::f32, {2, 2, 6, 8}};
  const Attributes plain = attributes(false, 0);
  return {
      {"heads that cannot share",
       {q, {DType::f32, {2, 3, 6, 8}}, {DType::f32, {2, 3, 6, 8}}},
       plain,
       "4 heads are no multiple of 3"},
      {"two batches",
       {q, {DType::f32, {1, 2, 6, 8}}, {DType::f32, {1, 2, 6, 8}}},
       plain,
       "q f32[2,4,5,8] and k f32[1,2,6,8] differ in batch"},
      {"two widths",
       {q, {DType::f32, {2, 2, 6, 4}}, {DType::f32, {2, 2, 6, 4}}},
       plain,
       "differ in width of head"},
      {"keys and values that differ",
       {q, k, {DType::f32, {2, 2, 7, 8}}},
       plain,
       "k f32[2,2,6,8] and v f32[2,2,7,8] differ in shape"},
      {"heads not apart", {{DType::f32, {2, 5, 32}}, k, k}, plain, "needs q of rank 4"},
      {"two dtypes", {q, {DType::bf16, {2, 2, 6, 8}}, k}, plain, "differ in dtype"},
      {"a mask of other keys",
       {q, k, k, {DType::boolean, {2, 1, 1, 5}}},
       attributes(true, 0),
       "needs a mask [2 or 1,4 or 1,5 or 1,6], got bool[2,1,1,5]"},
      {"a mask of integers",
       {q, k, k, {DType::i32, {2, 1, 1, 6}}},
       attributes(true, 0),
       "needs a mask of bool or f32, got i32[2,1,1,6]"},
      {"a mask that is not announced",
       {q, k, k, {DType::boolean, {2, 1, 1, 6}}},
       plain,
       "needs 3 operands, got 4"},
      {"everything dropped", {q, k, k, kIndex, kIndex}, attributes(false, 1), "not in [0, 1)"},
      {"dropout without a source",
       {q, k, k},
       attributes(false, 0.5),
       "needs 5 to 6 operands, got 3"},
      {"a seed that is no scalar",
       {q, k, k, {DType::i64, {2}}, kIndex},
       attributes(false, 0.5),
       "needs i64 scalars as source of its dropout, got i64[2]"},
  };
}

std::vector<ErrorSample> attention_gradient_error_samples() {
  const TensorType q{DType::bf16, {2, 4, 5, 8}};
  const TensorType k{DType::bf16, {2, 2, 6, 8}};
  const TensorType rows{DType::f32, {2, 4, 5}};
  const Attributes plain = attributes(false, 0);
  return {
      {"no statistics", {q, k, k}, plain, "needs 6 to 10 operands, got 3"},
      {"a log-sum-exp for each key",
       {q, k, k, q, {DType::f32, {2, 4, 6}}, rows},
       plain,
       "needs log_sum_exp f32[2,4,5], got f32[2,4,6]"},
      {"the cotangent of something else",
       {q, k, k, k, rows, rows},
       plain,
       "needs dy bf16[2,4,5,8] as q, got bf16[2,2,6,8]"},
      {"a delta of other width",
       {q, k, k, q, rows, {DType::f64, {2, 4, 5}}},
       plain,
       "needs delta f32[2,4,5], got f64[2,4,5]"},
      {"a mask of other keys",
       {q, k, k, q, rows, rows, {DType::boolean, {2, 1, 1, 5}}},
       attributes(true, 0),
       "needs a mask [2 or 1,4 or 1,5 or 1,6], got bool[2,1,1,5]"},
  };
}

}  // namespace fullbore
