#pragma once
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// A matmul that only a sum reads, as it is or after steps that do no arithmetic: reshapes,
/// transposes, and a cast to what sums are kept in.
struct SummedMatmul {
  const Node* matmul = nullptr;      ///< a matmul
  std::vector<const Node*> steps{};  ///< from the matmul on

  Value a() const { return matmul->inputs[0]; }
  Value b() const { return matmul->inputs[1]; }
  bool transpose_a() const { return matmul->attributes.get<bool>("transpose_a"); }
  bool transpose_b() const { return matmul->attributes.get<bool>("transpose_b"); }
  /// May it round its operands? One that may not is made by no matmul that may.
  bool tf32() const { return matmul->attributes.get_or("tf32", false); }
};

/// A tree of additions that nobody looks into, taken apart.
struct ProductSum {
  Value root;
  std::vector<const Node*> additions;
  std::vector<SummedMatmul> matmuls;
  std::vector<Value> others;  ///< what is added besides
};

/// The sum whose last addition makes `root`, which is as wide as sums are (f32 or f64); without
/// additions if it is none. `uses`: graph.use_counts().
ProductSum product_sum(const Graph& graph, const std::vector<int>& uses, Value root);

/// Both operands are [k, ·], so that matmuls with the same result become one on all of their rows.
bool contracts_rows(const Graph& graph, const SummedMatmul& matmul);

/// Extent that is contracted.
int64_t contracted_extent(const Graph& graph, const SummedMatmul& matmul);

/// The matmul of two operands, as wide as sums are, after the steps that `like` takes.
Tensor emit_matmul(const SummedMatmul& like, Tensor a, Tensor b, bool transpose_a,
                   bool transpose_b);

}  // namespace fullbore
