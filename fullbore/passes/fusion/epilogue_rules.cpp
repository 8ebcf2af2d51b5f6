#include "fullbore/passes/fusion/epilogue_rules.h"

#include <algorithm>
#include <set>

#include "fullbore/ir/fused_matmul.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"

namespace fullbore {
namespace {

/// Of a matmul [rows, columns] = [rows, depth] * [depth, columns].
struct Extents {
  int64_t rows = 0;
  int64_t columns = 0;

  Extents(const Graph& graph, const Node& matmul) {
    const TensorType& y = graph.type(matmul.outputs[0]);
    columns = y.shape[y.shape.rank() - 1];
    rows = columns == 0 ? 0 : y.elements() / columns;
  }
};

// Is each element that a fused body makes one of `inputs`, all of the matmul's extent, or of a part of a row of
// theirs that it reduces? Nothing may move an element of the matmul to another place.
bool reads_in_place(const Graph& body, const std::set<Value>& inputs, const Extents& extents) {
  std::set<Value> matmul = inputs;  // as it is, whatever its shape
  bool reduces = false;
  for (const Node& node : body.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](Value value) { return matmul.contains(value); });
    if (reads && node.op->is(Tag::identity)) matmul.insert(node.outputs[0]);
    if (reads && node.op->is(Tag::movement)) return false;
    if (!node.op->is(Tag::reduction)) continue;
    const Shape& shape = body.type(node.inputs[0]).shape;
    const auto& axes = node.attributes.get<std::vector<int64_t>>("axes");
    int64_t width = 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != shape.rank() - static_cast<int64_t>(axes.size() - i)) return false;
      width *= shape[static_cast<int>(axes[i])];
    }
    if (shape.elements() != extents.rows * extents.columns || extents.columns % width != 0)
      return false;
    reduces = true;
  }
  const bool whole =
      std::all_of(body.outputs().begin(), body.outputs().end(), [&](const Graph::Output& output) {
        return body.type(output.value).elements() == extents.rows * extents.columns;
      });
  return reduces || whole;
}

}  // namespace

Value renamed_from(const Graph& graph, Value value) {
  const Node* node = graph.producer_node(value);
  while (node && node->op->is(Tag::identity)) {
    value = node->inputs[0];
    node = graph.producer_node(value);
  }
  return value;
}

bool fits_behind(const Graph& graph, const Node& matmul, const Node& kernel) {
  const Extents extents(graph, matmul);
  const auto is_product = [&](Value value) {
    return renamed_from(graph, value) == matmul.outputs[0];
  };
  if (kernel.op->is(Tag::elementwise)) return true;
  if (kernel.op != op::fused || fused_matmul(kernel)) return false;
  std::set<Value> inputs;
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    if (is_product(kernel.inputs[i])) inputs.insert(kernel.body->inputs()[i].value);
  return reads_in_place(*kernel.body, inputs, extents);
}

bool may_have_epilogue(const Graph& graph, const Node& node, const Target& target) {
  const bool prepacked = node.op == op::prepacked_matmul;
  if (node.op != op::matmul && !prepacked) return false;
  const EpilogueTarget& limits = target.epilogues;
  if (!limits.operand_dtypes.contains(graph.type(node.inputs[0]).dtype)) return false;
  const TensorType& y = graph.type(node.outputs[0]);
  if (y.elements() == 0 || y.shape.slice(0, y.shape.rank() - 2).elements() != 1) return false;
  const Extents extents(graph, node);
  const int64_t bytes = graph.type(node.inputs[0]).bytes() + graph.type(node.inputs[1]).bytes();
  if (bytes + y.bytes() > limits.near_bytes) return false;
  // A matmul with one column is one by a vector.
  const bool few =
      extents.rows < limits.fewest_rows && !prepacked && node.attributes.get<bool>("transpose_b");
  return extents.columns > 1 && !few;
}

}  // namespace fullbore
