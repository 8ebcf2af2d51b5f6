#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// What of a graph's values is of parameters: known of inputs, and found of all others.
struct WeightValues {
  std::map<Value, std::string> matrices = {};  ///< parameters of two axes, cast perhaps, by name
  std::vector<bool> large = {};    ///< by value: a parameter of two axes or more, moved or cast
  std::vector<bool> trained = {};  ///< by value: computed from any parameter
};
/// Of a step's graph.
WeightValues weight_values(const Graph& graph);
/// Of the body of a loop in it.
WeightValues weight_values_of_body(const Node& loop, const WeightValues& around);

/// A matmul y = x W or x W^T with a parameter, and the matmuls of its gradient, as nodes of one graph.
struct Fp8Layer {
  std::string weight;  ///< the parameter's name
  int use = 0;         ///< which of its matmuls, in order
  int forward = -1;
  int input_gradient = -1;   ///< dx = dy W^T or dy W; -1: nobody asks for it
  int weight_gradient = -1;  ///< dW; -1: of an evaluation
  Value x, w, dy;            ///< operands; dy none of an evaluation

  /// "layers.0.mlp.up.weight", "shared.weight#1" of a weight's second matmul.
  std::string name() const;
};

/// The matmuls of a training step's graph, or of a body around its microbatches, that are made of 8-bit floats: f32, by
/// parameters whose gradient is made, but for
///
///   the first   x depends on no parameter: what comes of data may have any range
///   the last    nothing reads what follows from y together with another parameter of two axes or more: logits and other
///               predictions, whose loss feels each rounding
///   islands     scopes of Fp32Scope, and those that match a pattern of `excluded`
///
/// as Micikevicius et al. 2022, arXiv:2209.05433, section 4, and others leave them. Embeddings are no matmuls.
std::vector<Fp8Layer> fp8_layers(const Graph& graph, const WeightValues& weights,
                                 std::span<const std::string> excluded);
/// The same matmuls in an evaluation's graph, by their names.
std::vector<Fp8Layer> evaluated_fp8_layers(const Graph& graph, const WeightValues& weights,
                                           std::span<const std::string> names);

}  // namespace fullbore
