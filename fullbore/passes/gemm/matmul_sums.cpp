#include "fullbore/passes/gemm/matmul_sums.h"

#include <algorithm>
#include <optional>

#include "fullbore/ir/op_def.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

bool is_used_once(const std::vector<int>& uses, Value value) {
  return uses[static_cast<size_t>(value.id)] == 1;
}

bool is_step(const Graph& graph, const Node& node) {
  if (node.op->is(Tag::identity) || node.op == op::transpose) return true;
  return node.op == op::cast && is_low_precision(graph.type(node.inputs[0]).dtype);
}

std::optional<SummedMatmul> summed_matmul(const Graph& graph, const std::vector<int>& uses,
                                          Value term) {
  const DType wide = graph.type(term).dtype;
  SummedMatmul result;
  for (const Node* node = graph.producer_node(term); node && is_used_once(uses, term);
       node = graph.producer_node(term)) {
    if (node->op == op::matmul) {
      if (compute_dtype(graph.type(node->inputs[0]).dtype) != wide) break;
      result.matmul = node;
      std::reverse(result.steps.begin(), result.steps.end());
      return result;
    }
    if (!is_step(graph, *node)) break;
    result.steps.push_back(node);
    term = node->inputs[0];
  }
  return std::nullopt;
}

bool is_addition(const Graph& graph, Value value) {
  const Node* node = graph.producer_node(value);
  return node && node->op == op::add && graph.type(node->inputs[0]) == graph.type(value) &&
         graph.type(node->inputs[1]) == graph.type(value);
}

}  // namespace

ProductSum product_sum(const Graph& graph, const std::vector<int>& uses, Value root) {
  ProductSum sum{root, {}, {}, {}};
  const DType dtype = graph.type(root).dtype;
  if (!is_floating(dtype) || dtype != compute_dtype(dtype)) return sum;
  std::vector<Value> terms = {root};  // still to be looked at, the next one last
  while (!terms.empty()) {
    const Value term = terms.back();
    terms.pop_back();
    if (is_addition(graph, term) && (term == root || is_used_once(uses, term))) {
      const Node* node = graph.producer_node(term);
      sum.additions.push_back(node);
      terms.push_back(node->inputs[1]);
      terms.push_back(node->inputs[0]);
    } else if (auto matmul = summed_matmul(graph, uses, term); matmul && term != root) {
      sum.matmuls.push_back(std::move(*matmul));
    } else {
      sum.others.push_back(term);
    }
  }
  return sum;
}

int64_t contracted_extent(const Graph& graph, const SummedMatmul& matmul) {
  const Shape& shape = graph.type(matmul.a()).shape;
  return shape[shape.rank() - (matmul.transpose_a() ? 2 : 1)];
}

// A vector is a row as well as a column.
bool contracts_rows(const Graph& graph, const SummedMatmul& matmul) {
  if (graph.type(matmul.a()).shape.rank() != 2) return false;
  return (matmul.transpose_a() && !matmul.transpose_b()) || contracted_extent(graph, matmul) == 1;
}

Tensor emit_matmul(const SummedMatmul& like, Tensor a, Tensor b, bool transpose_a,
                   bool transpose_b) {
  GraphBuilder& builder = a.builder();
  const Origin origin(builder, *like.matmul);
  Tensor result = matmul(a, b,
                         {.transpose_a = transpose_a,
                          .transpose_b = transpose_b,
                          .out_dtype = compute_dtype(a.dtype()),
                          .tf32 = like.tf32()},
                         origin.loc());
  for (const Node* step : like.steps)
    if (step->op != op::cast) result = builder.emit_like(*step, std::vector<Tensor>{result})[0];
  return result;
}

}  // namespace fullbore
