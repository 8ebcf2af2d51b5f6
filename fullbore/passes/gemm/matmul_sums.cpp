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

std::optional<SummedProduct> summed_product(const Graph& graph, const std::vector<int>& uses,
                                            Value term) {
  const DType wide = graph.type(term).dtype;
  SummedProduct result;
  for (const Node* node = graph.producer_node(term); node && is_used_once(uses, term);
       node = graph.producer_node(term)) {
    if (node->op == op::matmul) {
      if (compute_dtype(graph.type(node->inputs[0]).dtype) != wide) break;
      result.product = node;
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
    } else if (auto product = summed_product(graph, uses, term); product && term != root) {
      sum.products.push_back(std::move(*product));
    } else {
      sum.others.push_back(term);
    }
  }
  return sum;
}

int64_t contracted_extent(const Graph& graph, const SummedProduct& product) {
  const Shape& shape = graph.type(product.a()).shape;
  return shape[shape.rank() - (product.transpose_a() ? 2 : 1)];
}

// A vector is a row as well as a column.
bool contracts_rows(const Graph& graph, const SummedProduct& product) {
  if (graph.type(product.a()).shape.rank() != 2) return false;
  return (product.transpose_a() && !product.transpose_b()) ||
         contracted_extent(graph, product) == 1;
}

Tensor emit_product(const SummedProduct& like, Tensor a, Tensor b, bool transpose_a,
                    bool transpose_b) {
  GraphBuilder& builder = a.builder();
  const Origin origin(builder, *like.product);
  Tensor result = matmul(a, b,
                         {.transpose_a = transpose_a,
                          .transpose_b = transpose_b,
                          .out_dtype = compute_dtype(a.dtype())},
                         origin.loc());
  for (const Node* step : like.steps)
    if (step->op != op::cast) result = builder.emit_like(*step, std::vector<Tensor>{result})[0];
  return result;
}

}  // namespace fullbore
