#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/passes/canonicalize/algebraic_simplification.h"
#include "fullbore/passes/canonicalize/common_subexpression_elimination.h"
#include "fullbore/passes/canonicalize/constant_folding.h"
#include "fullbore/passes/canonicalize/dead_code_elimination.h"
#include "fullbore/passes/canonicalize/expand_composites.h"
#include "fullbore/passes/fusion/fuse.h"
#include "fullbore/passes/fusion/fuse_epilogues.h"
#include "fullbore/passes/fusion/rematerialize_cheap_values.h"
#include "fullbore/passes/gemm/batch_weight_gradients.h"
#include "fullbore/passes/gemm/gemm_accumulation.h"
#include "fullbore/passes/gemm/gemm_bias.h"
#include "fullbore/passes/gemm/low_precision_weight_copies.h"
#include "fullbore/passes/gemm/prepack_operands.h"
#include "fullbore/passes/gemm/winograd_convolutions.h"
#include "fullbore/passes/loops/loop_invariant_code_motion.h"
#include "fullbore/passes/memory/order_nodes.h"
#include "fullbore/passes/memory/rematerialize.h"
#include "fullbore/passes/memory/scatter_accumulation.h"
#include "fullbore/passes/pass.h"
#include "fullbore/passes/precision/lower_precision.h"
#include "fullbore/passes/precision/reduce_intermediate_precision.h"
#include "fullbore/passes/precision/reduce_residual_precision.h"

namespace fullbore {
namespace {

int count_nodes(const Graph& graph) {
  int count = 0;
  for (const Node& node : graph.nodes()) count += 1 + (node.body ? count_nodes(*node.body) : 0);
  return count;
}

bool is_same(const Graph& a, const Graph& b) {
  const auto same_node = [](const Node& x, const Node& y) {
    return x.op == y.op && x.inputs == y.inputs && x.attributes == y.attributes &&
           (x.body == y.body || (x.body && y.body && is_same(*x.body, *y.body)));
  };
  const auto same_output = [](const Graph::Output& x, const Graph::Output& y) {
    return x.value == y.value;
  };
  return std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    same_node) &&
         std::equal(a.outputs().begin(), a.outputs().end(), b.outputs().begin(), b.outputs().end(),
                    same_output);
}

void check_disabled(const std::set<std::string>& disabled) {
  std::vector<std::string> optional;
  for (const Pass& pass : pipeline())
    if (pass.optional) optional.emplace_back(pass.name);
  for (const std::string& name : disabled) {
    const auto known = std::find_if(pipeline().begin(), pipeline().end(),
                                    [&](const Pass& pass) { return pass.name == name; });
    if (known == pipeline().end())
      throw UsageError(fmt::format("there is no pass '{}'.{}", name, did_you_mean(name, optional)));
    if (!known->optional)
      throw UsageError(fmt::format("pass '{}' cannot be switched off: {}", name, known->because));
  }
}

Graph run_verified(const Pass& pass, const Graph& graph, const Target& target) {
  const CheckContext context(fmt::format("pass {}", pass.name));
  Graph result = pass.run(graph, target);
  const std::string problem = verify(result);
  FB_CHECK(problem.empty(), "{}\n{}", problem, print(result));
  return result;
}

}  // namespace

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      {"expand_composites", "composites without a kernel of their own become primitives",
       "first: later passes see the arithmetic itself, and devices need kernels for primitives "
       "alone",
       false, expand_composites, CompileEffort::off},
      {"lower_precision",
       "matmuls read bf16, f16 or tf32 operands where engine.precision asks for it",
       "after expand_composites, when every matmul is visible; before folding, code motion and "
       "elimination, which put the casts where fewest bytes move",
       true, lower_precision, CompileEffort::off},
      {"constant_folding", "nodes that depend on constants alone are evaluated",
       "before algebraic_simplification, which looks for zeros and ones", true, constant_folding},
      {"algebraic_simplification", "algebra on one node at a time",
       "before code motion and elimination, which would move and compare idle nodes", true,
       algebraic_simplification},
      {"loop_invariant_code_motion", "nodes that are equal in every iteration leave the loop",
       "before common_subexpression_elimination: a loop and its gradient move out the same values",
       true, loop_invariant_code_motion},
      {"common_subexpression_elimination",
       "equal nodes become one, and so do loops of the same iterations",
       "after all passes that make equal nodes look equal; gradients repeat much of the forward "
       "pass",
       true, common_subexpression_elimination},
      {"dead_code_elimination", "nodes that no output depends on are dropped",
       "after common_subexpression_elimination, which leaves superseded results of loops behind",
       true, dead_code_elimination, CompileEffort::off},
      {"reduce_residual_precision",
       "residuals that loops save for one another are stored as engine.precision says",
       "after elimination, which settles what is saved; before fuse, which takes the casts into "
       "kernels",
       true, reduce_residual_precision},
      {"batch_weight_gradients", "matmuls whose results are added up become one matmul of all rows",
       "before gemm_accumulation, which handles the matmuls that stay in loops", true,
       batch_weight_gradients},
      {"gemm_accumulation", "a matmul adds its result to the sum that a loop carries (beta = 1)",
       "before fuse, which would make a kernel of the addition", true, gemm_accumulation},
      {"scatter_accumulation", "rows are added by index to what they are added to anyway",
       "before fuse, which would make a kernel of the addition", true, scatter_accumulation},
      {"low_precision_weight_copies",
       "matmuls read bf16 or f16 copies of weights that the optimizer's kernel updates",
       "after elimination, which leaves only what is read; before fuse, which takes the casts of "
       "new values into the optimizer's kernel",
       true, low_precision_weight_copies},
      {"gemm_bias", "a matmul adds the bias of its columns before it rounds",
       "after low_precision_weight_copies, which looks for matmuls; before fuse, which would make "
       "a "
       "kernel of the addition",
       true, gemm_bias},
      {"winograd_convolutions",
       "convolutions of 3 x 3 are made in tiles of 2 x 2, by 16 multiplications for 36",
       "after elimination, which leaves one convolution of equal ones; its place among passes that "
       "look for matmuls is free",
       true, winograd_convolutions},
      {"fuse", "chains of elementwise nodes and row reductions become one kernel each",
       "after all passes that look at single nodes", true, fuse},
      {"rematerialize_cheap_values",
       "kernels make values that cost no more than reading them, instead of handing them on",
       "right after fuse, whose kernels it looks into; before reduce_intermediate_precision, which "
       "counts what reaches memory",
       true, rematerialize_cheap_values, CompileEffort::full},
      {"reduce_intermediate_precision",
       "values between kernels are stored as engine.precision says",
       "after fuse and rematerialize_cheap_values: only now is it known which values reach memory",
       true, reduce_intermediate_precision},
      {"prepack_operands", "matrices that many matmuls read are prepacked once",
       "after the passes that look for matmuls of matrices; before fuse_epilogues, which adds "
       "epilogues to these too",
       true, prepack_operands},
      {"fuse_epilogues", "kernels that read a matmul run on its tiles while they are in cache",
       "after all passes that look into kernels; before order_nodes, which orders the final nodes",
       true, fuse_epilogues},
      {"order_nodes", "nodes run later where that lowers the peak of memory",
       "after all passes that add nodes or change dtypes, for it counts bytes", true, order_nodes},
      {"rematerialize",
       "activations are computed again for the gradient where engine.recompute "
       "allows it",
       "last: all values and their bytes are known, and no later pass merges equal nodes again",
       true, rematerialize, CompileEffort::off},
  };
  return passes;
}

Graph run_pass(std::string_view name, const Graph& graph, const Target& target) {
  const auto pass = std::find_if(pipeline().begin(), pipeline().end(),
                                 [&](const Pass& each) { return each.name == name; });
  FB_CHECK(pass != pipeline().end(), "there is no pass '{}'", name);
  return run_verified(*pass, graph, target);
}

Graph run_passes(Graph graph, const Target& target, const PassOptions& options,
                 std::vector<PassRecord>* records) {
  check_disabled(options.disabled);
  for (const Pass& pass : pipeline()) {
    PassRecord record;
    record.name = pass.name;
    record.nodes_before = record.nodes_after = count_nodes(graph);
    record.ran =
        pass.effort <= target.compile && !options.disabled.contains(std::string(pass.name));
    if (record.ran) {
      const auto start = std::chrono::steady_clock::now();
      Graph result = run_verified(pass, graph, target);
      record.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      record.changed = !is_same(graph, result);
      graph = std::move(result);
      record.nodes_after = count_nodes(graph);
      if (options.dump) options.dump(pass.name, graph);
    }
    if (records) records->push_back(record);
  }
  return graph;
}

}  // namespace fullbore
