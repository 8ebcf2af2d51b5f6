#include "fullbore/ops/counted_rows.h"

#include "fullbore/base/error.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/rules.h"

namespace fullbore {

// A sum of no rows, of none that there are.
Tensor zero_rows(GraphBuilder& builder, const TensorType& type, Tensor count, SourceLoc loc) {
  require_tensor("zero_rows", "count", count, loc);
  if (type.shape.rank() == 0 || type.dtype == DType::boolean)
    throw UsageError(fmt::format("zero_rows: needs rows of numbers, got {}", type.text()), loc);
  const auto zeros = [&](DType dtype, const Shape& shape) {
    return full(builder, {dtype, shape}, 0, loc);
  };
  return gather_sum(zeros(type.dtype, type.shape.without(0).inserted(0, 0)),
                    zeros(DType::i32, {type.shape[0], 0}), zeros(DType::i32, {0, 0}),
                    {count, zeros(DType::i64, {})}, loc);
}

bool has_counted_rows(const Node& node) {
  return node.op == op::gather_sum && node.inputs.size() > 3;
}

bool makes_zero_rows(const Graph& graph, const Node& node) {
  return has_counted_rows(node) && graph.type(node.inputs[1]).shape[1] == 0;
}

}  // namespace fullbore
