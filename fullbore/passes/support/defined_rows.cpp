#include "fullbore/passes/support/defined_rows.h"

#include "fullbore/ops/counted_rows.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

constexpr size_t kOperandsWithoutCounts = 3;

}  // namespace

std::vector<Tensor> operands_of_all_rows(const Node& node, std::vector<Tensor> operands) {
  if (has_counted_rows(node)) operands.resize(kOperandsWithoutCounts);
  return operands;
}

Graph with_defined_rows(const Graph& graph) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    Node changed = node;
    changed.body = rewritten_body(node, with_defined_rows);
    rewriter.map(node, rewriter.builder().emit_like(
                           changed, operands_of_all_rows(node, rewriter.tensors(node.inputs))));
  }
  return rewriter.finish();
}

}  // namespace fullbore
