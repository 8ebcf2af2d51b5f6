#include "fullbore/passes/gemm/winograd_convolutions.h"

#include <algorithm>

#include "fullbore/ops/convolution.h"
#include "fullbore/ops/convolution_geometry.h"
#include "fullbore/ops/winograd_convolution.h"
#include "fullbore/passes/support/rewriter.h"

namespace fullbore {
namespace {

// Each input is transformed once for all outputs, each sum once for all channels: of fewer this takes the time that
// multiplications save.
constexpr int64_t kFewest = 16;
// Additions, and outputs beyond odd extents, may take up what is saved.
constexpr double kMostShare = 0.7;

bool pays(const ConvGeometry& g) {
  return is_winograd_convolution(g) && std::min(g.group_inputs(), g.group_outputs()) >= kFewest &&
         winograd_flops(g) < kMostShare * g.flops();
}

}  // namespace

Graph winograd_convolutions(const Graph& graph, const Target& target) {
  Rewriter rewriter(graph);
  for (const Node& node : graph.nodes()) {
    const bool chosen =
        node.op == op::convolution &&
        target.is_native(op::winograd_convolution, graph.type(node.inputs[0]).dtype) &&
        pays(ConvGeometry::of_convolution(graph.type(node.inputs[0]).shape,
                                          graph.type(node.inputs[1]).shape, node.attributes));
    if (!chosen) {
      rewriter.copy(node, rewritten_body(node, [&](const Graph& body) {
                      return winograd_convolutions(body, target);
                    }));
      continue;
    }
    const Origin origin(rewriter.builder(), node);
    rewriter.map(node,
                 rewriter.builder().emit(op::winograd_convolution, rewriter.tensors(node.inputs),
                                         node.attributes, origin.loc()));
  }
  return rewriter.finish();
}

}  // namespace fullbore
