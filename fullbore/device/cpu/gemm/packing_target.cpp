#include "fullbore/device/cpu/gemm/packing_target.h"

#include "fullbore/device/cpu/gemm/amx_matmul.h"
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"

namespace fullbore::cpu {
namespace {

// Measured, bench/prepacked_operands.cpp: a copy of the matrix takes 10 to 40 % of a matmul of 32 rows, 4 to 12 % of one of
// 128, and less behind that, which is not worth a second copy of a model's weights in memory.
constexpr int64_t kMostRows = 128;
// Prepacking costs up to twice what a matmul's own copy does.
constexpr int64_t kFewestUses = 3;
// Rows of dot products, which read a transposed matrix where it lies, from which on they are slower.
constexpr int64_t kFewestRowsTransposed = 4;

}  // namespace

PackingTarget packing_target() {
  const VectorUnit unit = this_processor().vector_unit;
  const int64_t columns = gemm_unit<float>(unit)->block_columns;
  PackingTarget target{.most_rows = kMostRows, .fewest_uses = kFewestUses};
  // Elements of the matmuls' own type are read where they lie, if they are not transposed.
  target.layouts[DType::f64] = {.columns = gemm_unit<double>(unit)->block_columns,
                                .fewest_rows = kMostRows + 1,
                                .fewest_rows_transposed = kFewestRowsTransposed};
  target.layouts[DType::f32] = {.columns = columns,
                                .fewest_rows = kMostRows + 1,
                                .fewest_rows_transposed = kFewestRowsTransposed};
  // Others are widened for each matmul, and are twice the bytes when packed: more than dot products read.
  target.layouts[DType::f16] = {.columns = columns, .fewest_rows_transposed = kMostDotRows + 1};
  if (const auto* vnni = gemm_unit<VnniPair>(unit); !vnni)
    target.layouts[DType::bf16] = target.layouts[DType::f16];
  else
    target.layouts[DType::bf16] = {
        .columns = this_processor().amx_bf16 ? kAmxColumns : vnni->block_columns,
        .vnni = 2,
        .kept_for_one = true,
        .whole_depth = this_processor().amx_bf16 ? kAmxDepth : 0};
  return target;
}

}  // namespace fullbore::cpu
