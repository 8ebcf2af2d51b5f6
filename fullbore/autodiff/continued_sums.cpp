#include "fullbore/autodiff/continued_sums.h"

#include <algorithm>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

ptrdiff_t readers(const JointBody& joint, Value value) {
  ptrdiff_t count = std::count(joint.input_cotangents.begin(), joint.input_cotangents.end(), value);
  for (const Node& node : joint.graph.nodes())
    count += std::count(node.inputs.begin(), node.inputs.end(), value);
  return count;
}

ContinuedSum continued_sum(const JointBody& joint, Value cotangent) {
  const Graph& graph = joint.graph;
  Value sum = cotangent;
  int index = graph.producer(sum);
  const auto node = [&]() -> const Node& { return graph.nodes()[static_cast<size_t>(index)]; };
  // A sum of bf16 values is carried in f32.
  if (index >= joint.forward_nodes && node().op == op::cast && readers(joint, sum) == 1) {
    sum = node().inputs[0];
    index = graph.producer(sum);
  }
  if (index < joint.forward_nodes || !is_loop(node()) || readers(joint, sum) != 1) return {};
  const LoopShape shape(node());
  const auto result = std::find(node().outputs.begin(), node().outputs.end(), sum);
  const auto carried = result - node().outputs.begin();
  if (carried >= shape.carried) return {};
  const auto operand = static_cast<size_t>(carried + shape.first_carried());
  if (number_everywhere(graph, node().inputs[operand]) != 0.0) return {};
  return {index, operand, sum};
}

}  // namespace

std::vector<ContinuedSum> continued_sums(const JointBody& joint) {
  std::vector<ContinuedSum> sums;
  for (Value cotangent : joint.input_cotangents)
    sums.push_back(cotangent.valid() ? continued_sum(joint, cotangent) : ContinuedSum{});
  return sums;
}

}  // namespace fullbore
