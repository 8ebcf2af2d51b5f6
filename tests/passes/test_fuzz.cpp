#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/device/kernel_ir/lower.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ir/verify.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/memory/memory_lowering.h"
#include "fullbore/passes/pass.h"
#include "tests/support/copies.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random_graph.h"

namespace fullbore {
namespace {

// "" or what is wrong with the text form of the graph.
std::string check_text(const Graph& graph) {
  if (std::string problem = verify(graph); !problem.empty()) return "verify: " + problem;
  const std::string text = print(graph);
  const Result<Graph> read = parse_graph(text);
  if (!read.ok()) return "parse: " + read.error();
  return print(read.value()) == text ? "" : "print, parse, print is not the identity";
}

// "" or why the kernels of the CPU cannot be written for a group that was fused.
std::string check_fused(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (is_loop(node)) {
      if (std::string problem = check_fused(*node.body); !problem.empty()) return problem;
      continue;
    }
    std::string why_not;
    if (node.body && !jit::lower(graph, node, &why_not))
      return fmt::format("not lowered: {}\n{}", why_not, print_node(graph, node));
  }
  return "";
}

// The oracle keeps every value in double but for constants, which folding rounds to their type: in
// graphs of several dtypes a decision may then fall the other way, and only the form is compared.
bool compares_values(const Graph& graph) {
  const auto is_exact = [](DType dtype) { return !is_floating(dtype) || dtype == DType::f64; };
  for (int32_t i = 0; i < graph.value_count(); ++i)
    if (!is_exact(graph.type({i}).dtype)) return false;
  return true;
}

constexpr double kTolerance = 1e-9;

// What adds up errs by a little of its largest element, as it may where its terms come in another order.
void shake_sums(const Graph& graph, const Node& node, std::vector<Literal>& results,
                PhiloxStream& draws) {
  if (node.op->is(Tag::elementwise) || node.op->is(Tag::movement) || node.op->is(Tag::identity))
    return;
  for (size_t i = 0; i < results.size(); ++i) {
    Literal& y = results[i];
    if (!is_floating(graph.type(node.outputs[i]).dtype)) continue;
    double largest = 0;
    for (const double each : y.reals()) largest = std::max(largest, std::abs(each));
    for (double& each : y.reals()) each += draws.uniform(-1, 1) * 1e-13 * largest;
  }
}

std::vector<Literal> interpret_shaken(const RandomGraph& random, PhiloxStream& draws) {
  const Graph& graph = random.graph;
  std::vector<Literal> values(static_cast<size_t>(graph.value_count()));
  for (size_t i = 0; i < graph.inputs().size(); ++i)
    values[static_cast<size_t>(graph.inputs()[i].value.id)] = random.inputs[i];
  for (const Node& node : graph.nodes()) {
    std::vector<const Literal*> operands;
    for (Value input : node.inputs) operands.push_back(&values[static_cast<size_t>(input.id)]);
    std::vector<TensorType> types;
    for (Value output : node.outputs) types.push_back(graph.type(output));
    std::vector<Literal> results = interpret_node(node, types, operands);
    shake_sums(graph, node, results, draws);
    for (size_t i = 0; i < results.size(); ++i)
      values[static_cast<size_t>(node.outputs[i].id)] = std::move(results[i]);
  }
  std::vector<Literal> outputs;
  for (const Graph::Output& output : graph.outputs())
    outputs.push_back(values[static_cast<size_t>(output.value.id)]);
  return outputs;
}

// Does a decision stand on the edge, such as the rounding down of a sum that is zero but for rounding? Such a graph
// has no results to be kept.
bool hangs_on_rounding(const RandomGraph& random, const std::vector<Literal>& expected) {
  PhiloxStream draws(1);
  for (int repeat = 0; repeat < 8; ++repeat)
    if (!compare_literals(expected, interpret_shaken(random, draws), kTolerance, 1).empty())
      return true;
  return false;
}

std::string check_result(const Graph& after, const RandomGraph& random,
                         const std::vector<Literal>& expected) {
  if (std::string problem = check_text(after); !problem.empty()) return problem;
  if (std::string problem = check_fused(after); !problem.empty()) return problem;
  const std::vector<Literal> results = interpret(after, with_copies(after, random.inputs));
  if (!compares_values(random.graph)) return "";
  std::string problem = check_copies(after, random.inputs, results);
  if (problem.empty())
    problem = compare_literals(expected, without_copies(after, results), kTolerance, 1);
  return problem.empty() || hangs_on_rounding(random, expected) ? "" : problem;
}

// In as little memory as possible, and in the middle between that and what it is without.
std::string check_recomputed(const RandomGraph& random, const std::vector<Literal>& expected) {
  Target target;
  target.recompute = Recompute::full;
  const Graph least = run_passes(random.graph, target);
  if (std::string problem = check_result(least, random, expected); !problem.empty()) return problem;
  const int64_t most_bytes = estimated_arena_bytes(run_passes(random.graph, Target{}));
  const int64_t least_bytes = estimated_arena_bytes(least);
  if (least_bytes > most_bytes) return "takes more memory";
  if (least_bytes == most_bytes) return "";
  target.recompute = Recompute::automatic;
  target.arena_bytes = (least_bytes + most_bytes) / 2;
  const Graph less = run_passes(random.graph, target);
  // Not always as little as allowed: which value is given up first depends on the limit.
  if (estimated_arena_bytes(less) > most_bytes) return "takes more memory";
  return check_result(less, random, expected);
}

// Packs whatever two matmuls read.
PackingTarget packs_all() {
  return {.layouts = {{DType::f64, {.columns = 3}},
                      {DType::f32, {.columns = 4}},
                      {DType::bf16, {.columns = 2, .vnni = 2}}},
          .most_rows = 64,
          .fewest_uses = 2};
}

std::string check(const RandomGraph& random) {
  Target target;
  target.precision = DType::bf16;
  target.packing = packs_all();
  target.keeps_derived_weights = true;
  if (std::string problem = check_text(random.graph); !problem.empty()) return problem;
  const std::vector<Literal> expected = interpret(random.graph, random.inputs);
  for (const Pass& pass : pipeline()) {
    const Graph after = pass.run(random.graph, target);
    std::string problem = check_result(after, random, expected);
    if (problem.empty() && print(pass.run(after, target)) != print(after))
      problem = "twice is not once";
    if (!problem.empty()) return std::string(pass.name) + ": " + problem;
  }
  std::string problem = check_result(run_passes(random.graph, target), random, expected);
  if (!problem.empty()) return "all passes: " + problem;
  problem = check_recomputed(random, expected);
  return problem.empty() ? "" : "recompute: " + problem;
}

RandomGraph some_graph(uint64_t seed) {
  RandomGraphOptions options;
  if (seed % 5 == 0) options.choices = 25;
  if (seed % 4 == 0) {
    options.dtype = DType::f32;
    options.mixed_dtypes = true;
  }
  return random_graph(seed, options);
}

TEST(Fuzz, EveryPassAloneAndAllTogetherKeepTheValues) {
  std::string failure;
  const int graphs = fuzz(1000, [&](uint64_t seed) {
    const RandomGraph random = some_graph(seed);
    failure = check(random);
    if (failure.empty()) return true;
    const RandomGraph small =
        shrink(random, [&](const RandomGraph& smaller) { return !check(smaller).empty(); });
    failure = check(small) + "\n" + describe(seed, small);
    return false;
  });
  EXPECT_TRUE(failure.empty()) << failure;
  EXPECT_GT(graphs, 0);
  std::cout << graphs << " graphs\n";
}

// Rounded down: y - y of a matmul, or of y itself, whose zero nothing makes another number.
RandomGraph rounded_down(bool sums) {
  GraphBuilder builder("edge");
  const TensorType type{DType::f64, {2, 2}};
  const Tensor x = builder.input("x", Role::batch, type);
  const Tensor y = sums ? matmul(x, x) - matmul(x, x) : x - x;
  builder.output("y", floor(y));
  Literal value(type);
  for (int64_t i = 0; i < 4; ++i) value.put(i, 0.3 * static_cast<double>(i) + 1);
  return {builder.take(), {value}};
}

TEST(Fuzz, OnlyWhatSumsDecideOnTheEdgeIsLeftAlone) {
  const RandomGraph on_edge = rounded_down(true), sure = rounded_down(false);
  EXPECT_TRUE(hangs_on_rounding(on_edge, interpret(on_edge.graph, on_edge.inputs)));
  EXPECT_FALSE(hangs_on_rounding(sure, interpret(sure.graph, sure.inputs)));
}

// The generator is worth its time: graphs hold what it promises.
TEST(Fuzz, GraphsReachEveryKindOfOp) {
  std::map<std::string, int> seen;
  int loops = 0, parallel = 0, gradients = 0, gathered = 0, stacked = 0, packed = 0;
  Target packing;
  packing.packing = packs_all();
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    const RandomGraph random = random_graph(seed);
    for (const Node& node : random.graph.nodes()) {
      ++seen[std::string(node.op->name)];
      loops += is_loop(node);
      parallel += is_loop(node) && LoopShape(node).parallel;
    }
    gradients += !random.graph.nodes().empty();
    const std::string after = print(run_pass("batch_weight_gradients", random.graph, {}));
    gathered += after != print(random.graph);
    packed += print(run_pass("prepack_operands", random.graph, packing)) != print(random.graph);
    stacked += after.find("output \"rows\"") != std::string::npos;
  }
  std::string missing;
  for (const OpDef* op : all_ops())
    if (seen[std::string(op->name)] == 0) missing += " " + std::string(op->name);
  EXPECT_EQ(missing, "");
  EXPECT_GT(loops, 50);
  EXPECT_GT(parallel, 10);
  EXPECT_GT(gathered, 20);
  EXPECT_GT(stacked, 1);  // a rare pattern: each new op takes draws from it
  EXPECT_GT(packed, 10);
}

TEST(Fuzz, ShrinkingKeepsTheFailureAndLittleElse) {
  for (uint64_t seed = 1; seed < 200; ++seed) {
    const RandomGraph random = random_graph(seed);
    const auto has_tanh = [](const RandomGraph& each) {
      for (const Node& node : each.graph.nodes())
        if (node.op->name == "tanh") return true;
      return false;
    };
    if (random.graph.nodes().size() < 30 || !has_tanh(random)) continue;
    const RandomGraph small = shrink(random, has_tanh);
    EXPECT_TRUE(has_tanh(small));
    EXPECT_LE(small.graph.nodes().size(), 3u) << print(small.graph);
    EXPECT_EQ(verify(small.graph), "");
    return;
  }
  FAIL() << "no graph was large enough";
}

}  // namespace
}  // namespace fullbore
