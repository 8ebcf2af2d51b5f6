#include "fullbore/passes/memory/scatter_accumulation.h"

#include <map>
#include <set>
#include <vector>

#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<size_t>(graph.value_count()), 0);
  for (const Node& node : graph.nodes())
    for (const Value input : node.inputs) ++readers[static_cast<size_t>(input.id)];
  for (const Graph::Output& output : graph.outputs())
    ++readers[static_cast<size_t>(output.value.id)];
  return readers;
}

/// Additions to become index_adds, and the operand of each that vanishes.
using Additions = std::map<const Node*, size_t>;

Additions find_additions(const Graph& graph, const Target& target) {
  Additions found;
  const std::vector<int> readers = count_readers(graph);
  for (const Node& node : graph.nodes()) {
    if (node.op != op::add) continue;
    for (size_t i = 0; i < 2; ++i) {
      const Node* scatter = graph.producer_node(node.inputs[i]);
      if (scatter && scatter->op == op::scatter_add &&
          readers[static_cast<size_t>(node.inputs[i].id)] == 1 &&
          target.is_native(op::index_add, graph.type(node.inputs[i]).dtype))
        found[&node] = i;
    }
  }
  return found;
}

Graph rewrite(const Graph& graph, const Target& target) {
  const Additions additions = find_additions(graph, target);
  std::set<const Node*> vanishing;
  for (const auto& [node, operand] : additions)
    vanishing.insert(graph.producer_node(node->inputs[operand]));
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (vanishing.contains(&node)) continue;
    const auto addition = additions.find(&node);
    if (addition == additions.end()) {
      rewriter.copy(node,
                    rewritten_body(node, [&](const Graph& body) { return rewrite(body, target); }));
      continue;
    }
    const Node& scatter = *graph.producer_node(node.inputs[addition->second]);
    const Origin origin(rewriter.builder(), scatter);
    std::vector<Tensor> operands = {rewriter.tensor(node.inputs[1 - addition->second])};
    for (const Tensor operand : rewriter.tensors(scatter.inputs)) operands.push_back(operand);
    rewriter.map(node, rewriter.builder().emit(op::index_add, operands, {}, origin.loc()));
  }
  return rewriter.finish();
}

}  // namespace

Graph scatter_accumulation(const Graph& graph, const Target& target) {
  return rewrite(graph, target);
}

}  // namespace fullbore
