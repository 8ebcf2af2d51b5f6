#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"

namespace fullbore {

/// A graph with floating inputs to differentiate by, and where.
struct GradcheckCase {
  Graph graph;
  std::vector<Literal> inputs;  ///< one per input of the graph
  std::vector<bool> wanted;     ///< per input; true for floating ones only
};

struct GradcheckOptions {
  uint64_t seed = 1;
  double tolerance = 1e-6;    ///< relative error of every derivative looked at
  double gradient_scale = 1;  ///< the cotangents are multiplied by it: 1.01 must be rejected
};

struct GradcheckResult {
  std::string problem;   ///< "" or the first derivative that is wrong
  bool all_zero = true;  ///< was every derivative looked at zero?
  int derivatives = 0;   ///< number looked at
};

/// Compares `backward` with finite differences of the graph, both evaluated by the oracle in double.
///
/// Cotangents of the outputs are random; where inputs and outputs are few, they are also each unit
/// vector in turn, and every coordinate is looked at: the full Jacobian. Otherwise some random
/// directions through several elements at once, and some coordinates. The differences are
/// central and extrapolated to a step of zero; the extrapolation's own estimate of its error chooses
/// the step, so kinks and narrow domains near a point are kept clear of (Ridders 1982, "Accurate
/// computation of F'(x) and F'(x)F''(x)"; Press et al., Numerical Recipes, section 5.7).
GradcheckResult gradcheck(const GradcheckCase& check, const GradcheckOptions& options = {});

/// The graph that computes the cotangents of the wanted inputs: takes the graph's inputs, then one
/// cotangent per floating output.
Graph gradient_graph(const Graph& graph, const std::vector<bool>& wanted);

/// A literal of standard normal values.
Literal random_literal(const TensorType& type, uint64_t seed, uint64_t stream);

/// "" or the first element where the two differ by more than `tolerance` times the largest of: the
/// element, 1e-3 times the largest element of its tensor, `scale` (of what may have cancelled on the
/// way). Integers must be equal.
std::string compare_literals(const std::vector<Literal>& a, const std::vector<Literal>& b,
                             double tolerance, double scale = 0);

}  // namespace fullbore
