#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/passes/accumulate_products.h"
#include "fullbore/passes/expand_composites.h"
#include "fullbore/passes/fold_constants.h"
#include "fullbore/passes/fuse.h"
#include "fullbore/passes/fuse_epilogues.h"
#include "fullbore/passes/gather_products.h"
#include "fullbore/passes/hoist_invariants.h"
#include "fullbore/passes/keep_copies.h"
#include "fullbore/passes/lower_precision.h"
#include "fullbore/passes/merge_common.h"
#include "fullbore/passes/narrow_stacks.h"
#include "fullbore/passes/narrow_storage.h"
#include "fullbore/passes/pack_factors.h"
#include "fullbore/passes/pass.h"
#include "fullbore/passes/recompute.h"
#include "fullbore/passes/remove_dead.h"
#include "fullbore/passes/schedule.h"
#include "fullbore/passes/simplify.h"

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
      {"expand_composites", "composites without a kernel become primitives",
       "first: all others see the arithmetic itself, and backends need kernels for primitives "
       "alone",
       false, expand_composites},
      {"lower_precision", "contractions read bf16 or f16 where engine.precision asks for it",
       "after expansion, when every contraction is in sight; before folding, hoisting and merging, "
       "which put the casts where fewest bytes are moved",
       true, lower_precision},
      {"fold_constants", "what depends on constants alone is evaluated",
       "before simplify, which looks for zeros and ones", true, fold_constants},
      {"simplify", "algebra on one node at a time",
       "before hoisting and merging, which should not be distracted by idle nodes", true, simplify},
      {"hoist_invariants", "what every trip of a loop computes alike moves out of it",
       "before merging: a loop and its gradient hoist the same values", true, hoist_invariants},
      {"merge_common", "equal nodes become one, and so do loops that make the same trips",
       "after all that makes equal things look equal; gradients repeat much of the forward pass",
       true, merge_common},
      {"remove_dead", "what no output depends on is dropped",
       "after merging, which leaves the loops' superseded results behind", true, remove_dead},
      {"narrow_stacks", "what loops stack for one another is stored as engine.precision says",
       "after merging and removal, which settle what is stacked; before fuse, which takes the "
       "casts "
       "into kernels",
       true, narrow_stacks},
      {"gather_products", "products that are added up become one of all their rows",
       "before accumulate_products, which makes the best of the products that stay in loops", true,
       gather_products},
      {"accumulate_products", "sums that loops carry are added to by the products themselves",
       "before fuse, which would make a kernel of the addition", true, accumulate_products},
      {"keep_copies", "weights are read from copies that the optimiser's sweep keeps in step",
       "after removal, which leaves only what is read; before fuse, which takes the casts of new "
       "values into the sweep",
       true, keep_copies},
      {"fuse", "chains of elementwise nodes and row reductions become one kernel each",
       "after all passes that look at single nodes", true, fuse},
      {"narrow_storage", "what kernels hand to one another is stored as engine.precision says",
       "after fusion: only now is it known which values reach memory", true, narrow_storage},
      {"pack_factors", "matrices that many products read are copied into panels once",
       "after the passes that look for products of matrices; before fuse_epilogues, which puts "
       "kernels behind these too",
       true, pack_factors},
      {"fuse_epilogues", "what reads a product is done on its tiles while they are in cache",
       "after all that looks into kernels; before schedule, which orders what is there now", true,
       fuse_epilogues},
      {"schedule", "nodes that nobody waits for are put off where that saves memory",
       "after all that decides what is made and in which type, for it counts bytes", true,
       schedule},
      {"recompute", "activations are made again for the gradient where engine.recompute allows it",
       "last: all that takes memory is there with its bytes, and nothing merges equal nodes again",
       true, recompute},
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
    record.ran = !options.disabled.contains(std::string(pass.name));
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
