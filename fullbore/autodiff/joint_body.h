#pragma once
#include <vector>

#include "fullbore/ir/graph.h"

namespace fullbore {

/// A loop's body and its pullback as one graph, before they are divided between two loops.
struct JointBody {
  Graph graph;                 ///< inputs: the body's, then one cotangent per flowing output
  int forward_nodes = 0;       ///< nodes [0, forward_nodes) are the body's, nested loops augmented
  std::vector<Value> outputs;  ///< per output of the body: what it became
  std::vector<Value> output_cotangents;  ///< per output of the body: graph input, or none
  std::vector<Value> input_cotangents;   ///< per input of the body: result, or none

  bool is_forward(Value value) const { return graph.producer(value) < forward_nodes; }
};

/// flows   per output of the body: does a cotangent come in?
/// wanted  per input of the body: is its cotangent asked for?
JointBody differentiate_body(const Graph& body, const std::vector<bool>& flows,
                             const std::vector<bool>& wanted);

/// What of a body carries cotangents: its floating values on a path from inputs to outputs.
/// A nested loop counts as one node, all of whose results depend on all of its operands, or else its body is looked
/// into (`through_loops`), as that of a segment is: it is to have the cotangents that it has in one loop over all.
/// Per output: does it depend on one of `inputs`?
std::vector<bool> varying_outputs(const Graph& body, const std::vector<bool>& inputs,
                                  bool through_loops);
/// Per input: does one of `outputs` depend on it?
std::vector<bool> reached_inputs(const Graph& body, const std::vector<bool>& outputs,
                                 bool through_loops);

}  // namespace fullbore
