#include "fullbore/passes/canonicalize/expand_composites.h"

#include <algorithm>
#include <set>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/op_handle.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

bool expands(const Graph& graph, const Node& node, const Target& target) {
  return node.op->decompose && !target.is_native(graph, node);
}

// Is there anything left to expand, in the graph or in a body of it?
bool is_unexpanded(const Graph& graph, const Target& target) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return expands(graph, node, target) || (node.body && is_unexpanded(*node.body, target));
  });
}

// The node that makes this one's results on its way (OpDef::included_in), or null.
const Node* including(const Graph& graph, const Node& node) {
  if (!node.op->included_in) return nullptr;
  const auto found =
      std::find_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& other) {
        return other.op == *node.op->included_in && other.inputs == node.inputs &&
               other.attributes == node.attributes;
      });
  return found == graph.nodes().end() ? nullptr : &*found;
}

// Nodes that another one includes give way to it: it stands where the first of them stood, for it
// reads what that did.
Graph make_included_once(const Graph& graph) {
  Rewriter rewriter(graph);
  std::set<const Node*> moved;
  for (const Node& node : graph.nodes()) {
    if (moved.contains(&node)) continue;
    if (const Node* whole = including(graph, node)) {
      if (moved.insert(whole).second && whole > &node) rewriter.copy(*whole);
      for (size_t i = 0; i < node.outputs.size(); ++i)
        rewriter.map(node.outputs[i], rewriter[whole->outputs[i]]);
      continue;
    }
    rewriter.copy(node, rewritten_body(node, make_included_once));
  }
  return rewriter.finish();
}

// Of a composite that makes `rows` rows of logits at a time, all classes of weight [V,C]: those that the target wants.
Attributes attributes_for(const Target& target, const Graph& graph, const Node& node) {
  Attributes attributes = node.attributes;
  const bool makes_logits =
      node.op == op::linear_cross_entropy || node.op == op::linear_cross_entropy_gradient ||
      node.op == op::linear_log_probability || node.op == op::linear_log_probability_gradient;
  if (!makes_logits) return attributes;
  const int64_t row_bytes = dtype_bytes(DType::f32) * graph.type(node.inputs[1]).shape[0];
  attributes.set("rows",
                 std::max(attributes.get<int64_t>("rows"), target.logits_bytes / row_bytes));
  return attributes;
}

Graph expand_once(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!expands(graph, node, target)) {
      rewriter.copy(
          node, rewritten_body(node, [&](const Graph& body) { return expand_once(body, target); }));
      continue;
    }
    const Origin origin(rewriter.builder(), node);
    const std::vector<Tensor> operands = rewriter.tensors(node.inputs);
    rewriter.map(node,
                 node.op->decompose({operands, attributes_for(target, graph, node), origin.loc()}));
  }
  return rewriter.finish();
}

}  // namespace

Graph expand_composites(const Graph& graph, const Target& target) {
  Graph result = expand_once(make_included_once(graph), target);
  // A decomposition may hold composites of its own.
  while (is_unexpanded(result, target)) result = expand_once(result, target);
  return result;
}

}  // namespace fullbore
