#include "fullbore/passes/gemm/batch_weight_gradients.h"

#include "fullbore/ir/loop.h"
#include "fullbore/passes/canonicalize/dead_code_elimination.h"
#include "fullbore/passes/gemm/weight_gradient_iterations.h"
#include "fullbore/passes/gemm/weight_gradient_sites.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// Inner loops first: what is gathered there may be a matmul of the iterations around it.
Graph gather(const Graph& graph, bool& changed) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    if (!is_loop(node)) {
      rewriter.copy(node);
      continue;
    }
    const auto body = std::make_shared<const Graph>(gather(*node.body, changed));
    const std::vector<Tensor> results =
        gather_iterations(rewriter.builder(), node, rewriter.tensors(node.inputs), *body);
    if (results.empty()) {
      rewriter.copy(node, body);
    } else {
      rewriter.map(node, results);
      changed = true;
    }
  }
  Graph iterations = rewriter.finish();
  std::optional<Graph> sites = gather_sites(iterations);
  changed |= sites.has_value();
  return sites ? std::move(*sites) : std::move(iterations);
}

}  // namespace

// What is gathered leaves nodes behind that nobody reads, and what they keep counts against what a loop
// may stack: until nothing is found any more. Each time there are fewer matmuls.
Graph batch_weight_gradients(const Graph& graph, const Target& target) {
  Graph result = graph;
  while (true) {
    bool changed = false;
    const Graph gathered = gather(result, changed);
    if (!changed) return result;
    result = dead_code_elimination(gathered, target);
  }
}

}  // namespace fullbore
