#include "fullbore/passes/gemm/gemm_accumulation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/compose.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

int64_t count_readers(const Graph& graph, Value value) {
  int64_t readers = 0;
  for (const Node& node : graph.nodes())
    readers += std::count(node.inputs.begin(), node.inputs.end(), value);
  for (const Graph::Output& output : graph.outputs()) readers += output.value == value;
  return readers;
}

// The matmul that nobody but an addition reads, as wide as sums are, or null.
const Node* sole_matmul(const Graph& body, Value value, const Target& target) {
  const Node* node = body.producer_node(value);
  if (!node || node->op != op::matmul || count_readers(body, value) != 1) return nullptr;
  const DType operand = body.type(node->inputs[0]).dtype;
  return body.type(value).dtype == compute_dtype(operand) &&
                 target.is_native(op::matmul_add, operand)
             ? node
             : nullptr;
}

/// Additions to become matmuls, and those matmuls.
using Additions = std::map<Value, const Node*>;

Additions find_additions(const Graph& body, int carried, const Target& target) {
  Additions found;
  for (int c = 0; c < carried; ++c) {
    const Value previous = body.inputs()[static_cast<size_t>(1 + c)].value;
    const Value next = body.outputs()[static_cast<size_t>(c)].value;
    const Node* sum = body.producer_node(next);
    if (!sum || sum->op != op::add) continue;
    for (size_t i = 0; i < 2; ++i)
      if (sum->inputs[i] == previous)
        if (const Node* matmul = sole_matmul(body, sum->inputs[1 - i], target))
          found[next] = matmul;
  }
  return found;
}

Graph rewrite(const Graph& graph, const Target& target, int carried) {
  const Additions additions = find_additions(graph, carried, target);
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const bool vanishes = std::any_of(additions.begin(), additions.end(),
                                      [&](const auto& each) { return each.second == &node; });
    if (vanishes) continue;
    const auto addition = node.outputs.empty() ? additions.end() : additions.find(node.outputs[0]);
    if (addition == additions.end()) {
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return rewrite(body, target, is_loop(node) ? LoopShape(node).carried : 0);
                    }));
      continue;
    }
    const Node& matmul = *addition->second;
    const Origin origin(rewriter.builder(), matmul);
    std::vector<Tensor> operands = rewriter.tensors(matmul.inputs);
    const bool first = node.inputs[0] != matmul.outputs[0];
    operands.push_back(rewriter.tensor(node.inputs[first ? 0 : 1]));
    Attributes attributes{{"transpose_a", matmul.attributes.get<bool>("transpose_a")},
                          {"transpose_b", matmul.attributes.get<bool>("transpose_b")}};
    if (matmul.attributes.has("tf32")) attributes.set("tf32", true);
    rewriter.map(node, rewriter.builder().emit(op::matmul_add, operands, std::move(attributes),
                                               origin.loc()));
  }
  return rewriter.finish();
}

}  // namespace

Graph gemm_accumulation(const Graph& graph, const Target& target) {
  return rewrite(graph, target, 0);
}

}  // namespace fullbore
