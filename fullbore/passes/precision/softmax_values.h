#pragma once
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// The values of a graph that make up a softmax, its logarithm, a cross-entropy, or the gradient of one, whether the op
/// was decomposed or the model wrote it with primitives. Found by structure: fused nodes are looked into, and loops.
struct SoftmaxValues {
  /// Per value: a weight, the exponential of a difference or an exponential that is summed, times or divided by
  /// anything.
  std::vector<bool> weights;
  /// Per value: its absolute error reaches an exponential or a difference that nearly cancels. These are the
  /// operands of the difference within a weight's exponential (scores and logits), the cotangents that a softmax's
  /// gradient subtracts their mean from, and whatever elementwise arithmetic and movement makes them. A score of 1e4
  /// rounded to bf16 is off by up to 32, and its weight by a factor of up to e^32.
  std::vector<bool> pinned;

  explicit SoftmaxValues(const Graph& graph) : SoftmaxValues(graph, {}, {}) {}
  /// Of a body, of whose inputs and outputs the graph around it says so much; empty: nothing.
  SoftmaxValues(const Graph& graph, const std::vector<bool>& weight_inputs,
                const std::vector<bool>& pinned_outputs);

  /// Of the body of a loop among the graph's nodes.
  SoftmaxValues of_body(const Node& loop) const;
};

}  // namespace fullbore
