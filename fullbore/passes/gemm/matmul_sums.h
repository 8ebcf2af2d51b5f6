#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// A matrix product that only a sum reads, as it is or after steps that do no arithmetic: reshapes,
/// transposes, and a cast to what sums are kept in.
struct SummedProduct {
  const Node* product = nullptr;     ///< a matmul
  std::vector<const Node*> steps{};  ///< from the product on

  Value a() const { return product->inputs[0]; }
  Value b() const { return product->inputs[1]; }
  bool transpose_a() const { return product->attributes.get<bool>("transpose_a"); }
  bool transpose_b() const { return product->attributes.get<bool>("transpose_b"); }
};

/// A tree of additions that nobody looks into, taken apart.
struct ProductSum {
  Value root;
  std::vector<const Node*> additions;
  std::vector<SummedProduct> products;
  std::vector<Value> others;  ///< what is added besides
};

/// The sum whose last addition makes `root`, which is as wide as sums are (f32 or f64); without
/// additions if it is none. `uses`: graph.use_counts().
ProductSum product_sum(const Graph& graph, const std::vector<int>& uses, Value root);

/// Both operands are [k, ·], so that products with the same result become one on all of their rows.
bool contracts_rows(const Graph& graph, const SummedProduct& product);

/// Extent that is contracted.
int64_t contracted_extent(const Graph& graph, const SummedProduct& product);

/// The product of two operands, as wide as sums are, after the steps that `like` takes.
Tensor emit_product(const SummedProduct& like, Tensor a, Tensor b, bool transpose_a,
                    bool transpose_b);

}  // namespace fullbore
