#include <gtest/gtest.h>

#include <algorithm>

#include "../support/program_check.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "tests/support/device.h"
#include "tests/support/gradcheck.h"

/// index_add in a program: the bits of scatter_add and add, in the place of its base and apart from it, on any number of threads.
namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kRows = 61, kWidth = 133, kUpdates = 200;

// A base that nobody else reads, or one that is an output too; two scatter_adds, of which the second names the first's rows again.
Graph sums(DType dtype, bool base_stays) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {dtype, {kRows, kWidth}});
  const Tensor updates = builder.input("updates", Role::batch, {dtype, {kUpdates, kWidth}});
  const Tensor rows = builder.input("rows", Role::batch, {DType::i32, {kUpdates}});
  const Tensor base = x * 1.5;
  const Tensor y =
      base + scatter_add(updates, rows, kRows) + scatter_add(updates * 0.25, rows, kRows);
  builder.output("y", y * 0.5);  // an output of its own has its own place
  if (base_stays) builder.output("base", base);
  return builder.take();
}

std::vector<Literal> inputs(DType dtype) {
  std::vector<Literal> all = {random_literal({dtype, {kRows, kWidth}}, 5, 0),
                              random_literal({dtype, {kUpdates, kWidth}}, 5, 1)};
  for (Literal& each : all) each.round();
  std::vector<double> rows;
  for (int64_t i = 0; i < kUpdates; ++i)
    rows.push_back(
        static_cast<double>((i * i + 3) % 53 - 2));  // some out of range, some rows without any
  all.push_back(Literal::of({DType::i32, {kUpdates}}, rows));
  return all;
}

int64_t count_of(const Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.op->name == op; });
}

TEST(IndexAdd, HasTheBitsOfScatterAddAndAdd) {
  for (const DType dtype : {DType::f64, DType::f32})
    for (const bool base_stays : {false, true}) {
      const Graph graph = sums(dtype, base_stays);
      EXPECT_EQ(count_of(run_passes(graph, cpu_device(2)->target()), "index_add"), 2);
      const std::vector<Literal> apart = testing_support::run_graph(
          graph, inputs(dtype), cpu_device(2), {.passes = {.disabled = {"scatter_accumulation"}}});
      for (const int threads : {1, 2, 3, 4})
        EXPECT_EQ(
            testing_support::compare_bits(
                apart, testing_support::run_graph(graph, inputs(dtype), cpu_device(threads), {})),
            "")
            << dtype_name(dtype) << ", " << threads << " threads"
            << (base_stays ? ", the base stays" : "");
    }
}

}  // namespace
}  // namespace fullbore
