/// How long choosing what to recompute takes on large unrolled graphs.
///
///     bench_memory_lowering [NODES ...]
///
/// Three graphs of about NODES (1250 2500 5000 10000 20000) nodes each. `chain`: a recurrence of matmuls
/// with its gradient, in whose forward pass memory rises step by step. `plateau`: sixteen large
/// values that live across a long chain of matmuls, so that each of its launches needs as much as any
/// other. `blocks`: residual blocks of two matmuls, squared in between, with their gradient. Columns: estimated bytes before,
/// allowed and reached (node_order.h), work added, seconds for a budget and for `full`, and seconds of
/// the pass `order_nodes`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/text.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/memory/memory_lowering.h"
#include "fullbore/passes/memory/order_nodes.h"

namespace fullbore {
namespace {

constexpr int64_t kWidth = 64;

void finish(GraphBuilder& builder, Tensor loss, std::vector<Tensor> wanted) {
  const std::vector<Tensor> gradients = gradient(loss, wanted);
  for (size_t i = 0; i < gradients.size(); ++i)
    builder.output(fmt::format("gradient.{}", i), gradients[i]);
}

Graph chain(int64_t steps) {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, {DType::f32, {kWidth, kWidth}});
  const Tensor weight = builder.input("weight", Role::parameter, {DType::f32, {kWidth, kWidth}});
  for (int64_t i = 0; i < steps; ++i) x = matmul(x, weight);
  finish(builder, reduce_sum(x, {0, 1}), {weight});
  return builder.take();
}

Graph blocks(int64_t steps) {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, {DType::f32, {kWidth, kWidth}});
  std::vector<Tensor> weights;
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor up =
        builder.input(fmt::format("up.{}", i), Role::parameter, {DType::f32, {kWidth, 4 * kWidth}});
    const Tensor down = builder.input(fmt::format("down.{}", i), Role::parameter,
                                      {DType::f32, {4 * kWidth, kWidth}});
    const Tensor hidden = matmul(x, up);
    x = x + matmul(hidden * hidden, down);
    weights.insert(weights.end(), {up, down});
  }
  finish(builder, reduce_sum(x, {0, 1}), weights);
  return builder.take();
}

Graph plateau(int64_t steps) {
  GraphBuilder builder;
  Tensor x = builder.input("x", Role::batch, {DType::f32, {kWidth, kWidth}});
  const Tensor rows = builder.input("rows", Role::batch, {DType::f32, {16 * kWidth, kWidth}});
  const Tensor weight = builder.input("weight", Role::parameter, {DType::f32, {kWidth, kWidth}});
  std::vector<Tensor> large;
  for (int i = 0; i < 16; ++i) large.push_back(matmul(rows * static_cast<double>(i + 1), weight));
  for (size_t i = 0; i < large.size(); ++i)
    builder.output(fmt::format("early.{}", i), reduce_sum(large[i], {0, 1}));
  for (int64_t i = 0; i < steps; ++i) x = matmul(x, weight);
  for (size_t i = 0; i < large.size(); ++i)
    builder.output(fmt::format("late.{}", i), reduce_sum(matmul(large[i], x), {0, 1}));
  return builder.take();
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double work_of(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes()) flops += node_cost(graph, node).flops;
  return flops;
}

void measure(const char* name, const Graph& graph) {
  const int64_t before = estimated_arena_bytes(graph);
  const int64_t allowed = before * 6 / 10;
  Graph less;
  const double limited =
      seconds_of([&] { less = lower_memory(graph, allowed, Means::recomputation); });
  Graph least;
  const double full = seconds_of([&] { least = lower_memory(graph, 0, Means::recomputation); });
  const double ordered = seconds_of([&] { order_nodes(graph, {}); });
  const auto added = [&](const Graph& after) {
    return 100 * (work_of(after) / work_of(graph) - 1);
  };
  fmt::print(
      "{:<8} {:>6} {:>11} {:>11} {:>11} {:>7.1f} {:>9.3f} {:>11} {:>7.1f} {:>9.3f} {:>9.3f}\n",
      name, graph.nodes().size(), bytes_text(static_cast<double>(before)),
      bytes_text(static_cast<double>(allowed)),
      bytes_text(static_cast<double>(estimated_arena_bytes(less))), added(less), limited,
      bytes_text(static_cast<double>(estimated_arena_bytes(least))), added(least), full, ordered);
  std::fflush(stdout);
}

/// The graph of that kind with about as many nodes.
Graph with_nodes(Graph (*make)(int64_t), int64_t nodes) {
  const auto few = static_cast<int64_t>(make(10).nodes().size());
  const auto more = static_cast<int64_t>(make(20).nodes().size());
  return make(10 + std::max<int64_t>(0, 10 * (nodes - few) / (more - few)));
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  std::vector<int64_t> sizes = {1250, 2500, 5000, 10000, 20000};
  if (argc > 1) sizes.clear();
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
  fmt::print("{:<8} {:>6} {:>11} {:>11} {:>11} {:>7} {:>9} {:>11} {:>7} {:>9} {:>9}\n", "graph",
             "nodes", "before", "allowed", "reached", "work, %", "s", "full", "work, %", "s",
             "order_nodes");
  for (const int64_t nodes : sizes) {
    fullbore::measure("chain", fullbore::with_nodes(fullbore::chain, nodes));
    fullbore::measure("plateau", fullbore::with_nodes(fullbore::plateau, nodes));
    fullbore::measure("blocks", fullbore::with_nodes(fullbore::blocks, nodes));
  }
}
