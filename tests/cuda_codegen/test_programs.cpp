// Whole programs on generated kernels, node by node against the reference: bodies that passes have fused, random graphs.

#include <gtest/gtest.h>

#include "../support/random_graph.h"
#include "fullbore/base/philox.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compare_nodes.h"
#include "generated_device.h"

namespace fullbore {
namespace {

using testing_support::generated_device;
using testing_support::GeneratedCounts;

std::vector<Literal> random_inputs(const Graph& graph) {
  std::vector<Literal> inputs;
  PhiloxStream draws(7);
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i)
      literal.put(i, literal.floating() ? draws.normal() : static_cast<double>(draws.below(2)));
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

using Operands = std::vector<Tensor>;
using Write = std::function<Operands(const Operands&)>;

// Fused by the passes, and without a node that has no generated kernel.
void expect_right(const std::vector<TensorType>& types, const Write& write) {
  GraphBuilder builder("step");
  Operands operands;
  for (const TensorType& type : types)
    operands.push_back(builder.input("x" + std::to_string(operands.size()), Role::batch, type));
  const Operands results = write(operands);
  for (size_t i = 0; i < results.size(); ++i) builder.output("y" + std::to_string(i), results[i]);
  const Graph graph = builder.take();
  GeneratedCounts counts;
  EXPECT_EQ(first_difference(graph, random_inputs(graph), generated_device(&counts), {}), "");
  EXPECT_GT(counts.generated, 0);
  EXPECT_EQ(counts.others, 0);
}

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

TEST(PtxPrograms, Softmax) {
  for (int64_t width : {1, 5, 65, 300, 2500})
    expect_right({f32({3, 4, width})}, [](const Operands& x) { return Operands{softmax(x[0])}; });
  expect_right({f32({3, 20, 37})}, [](const Operands& x) { return Operands{softmax(x[0], 1)}; });
}

// By blocks of 1024 threads: rows of 16384 numbers that are read more than once, by 16 bytes and one by one.
TEST(PtxPrograms, LongRowsThatAreReadAgain) {
  for (int64_t width : {16384, 20001})
    expect_right({f32({3, width}), {DType::bf16, {3, width}}}, [](const Operands& x) {
      const Tensor wide = cast(x[1], DType::f32);
      const Tensor centred = wide - reduce_max(wide, {1}, true);
      return Operands{softmax(x[0]),
                      cast(centred / reduce_sum(exp(centred), {1}, true), DType::bf16)};
    });
}

TEST(PtxPrograms, LayerNormWithItsStatistics) {
  for (int64_t width : {3, 129, 768})
    expect_right({f32({11, width}), f32({width}), f32({width})}, [](const Operands& x) {
      const double count = static_cast<double>(x[0].dim(-1));
      const Tensor mean = reduce_sum(x[0], {-1}, true) / count;
      const Tensor centred = x[0] - mean;
      const Tensor scale = rsqrt(reduce_sum(centred * centred, {-1}, true) / count + 1e-5);
      return Operands{centred * scale * x[1] + x[2], mean, squeeze(scale, 1)};
    });
}

TEST(PtxPrograms, SumsOfEveryShape) {
  expect_right({f32({3, 4, 5, 6})}, [](const Operands& x) {
    return Operands{reduce_sum(x[0] * x[0], {1, 3}, true), x[0] * 2.0};
  });
  for (int64_t width : {1, 16, 63, 200})
    expect_right({f32({40, width}), f32({40, width})}, [](const Operands& x) {
      return Operands{reduce_sum(x[0] * x[1], {0}), reduce_max(x[0], {0})};
    });
}

// In chunks that a second launch combines.
TEST(PtxPrograms, LongSumsOfFewResults) {
  expect_right({f32({70000})}, [](const Operands& x) { return Operands{reduce_sum(x[0], {0})}; });
  expect_right({f32({2, 3, 9001})}, [](const Operands& x) {
    return Operands{reduce_max(x[0], {1, 2})};
  });
  expect_right({{DType::bf16, {6000, 5}}}, [](const Operands& x) {
    const Tensor wide = cast(x[0], DType::f32);
    return Operands{sqrt(reduce_sum(wide * wide, {0})), reduce_sum(wide, {0})};
  });
}

// By blocks: of some warps, and of 32; the last step is not whole.
TEST(PtxPrograms, LongScans) {
  for (int64_t width : {2048, 2500, 20001})
    expect_right({f32({3, width}), {DType::i32, {2, width}}}, [](const Operands& x) {
      const Tensor sums = cumsum(exp(x[0] - reduce_max(x[0], {1}, true)), 1);
      const Tensor total = slice(sums, 1, sums.dim(1) - 1, sums.dim(1));
      return Operands{reduce_sum(cast(less_equal(sums, total * 0.3), DType::i32), {1}),
                      cumsum(cast(x[1], DType::i64), 1, true)};
    });
}

// Of so many chunks that a warp combines them for each result: 40 of a row, 79 of five columns.
TEST(PtxPrograms, SumsOfManyChunks) {
  expect_right({f32({320001})}, [](const Operands& x) {
    return Operands{reduce_sum(x[0] * x[0], {0}), reduce_max(x[0], {0})};
  });
  expect_right({{DType::bf16, {40001, 5}}, f32({5})}, [](const Operands& x) {
    const Tensor wide = cast(x[0], DType::f32);
    return Operands{sqrt(reduce_sum(wide * wide, {0})) * x[1], reduce_sum(wide, {0})};
  });
}

// A warp adds up a row: several steps of 32 at once, then what is left; of sums that are used, and beside reductions.
TEST(PtxPrograms, RunningSumsOfLongRows) {
  for (const int64_t width : {31, 256, 257, 300, 1000})
    for (const bool backwards : {false, true})
      expect_right({f32({5, width})}, [&](const Operands& x) {
        const Tensor weights = x[0] * x[0];
        return Operands{cumsum(weights, 1, false, backwards), cumsum(x[0], 1, true, backwards),
                        reduce_sum(weights, {1})};
      });
  expect_right({{DType::i64, {3, 700}}},
               [](const Operands& x) { return Operands{cumsum(x[0], 1) * 2.0}; });
  expect_right({f32({4, 600})}, [](const Operands& x) {
    return Operands{cumsum(exp(tanh(x[0]) * sigmoid(x[0])) * sqrt(x[0] * x[0] + 1.0), 1)};
  });
}

TEST(PtxPrograms, SeveralResultsAndDTypes) {
  expect_right(
      {f32({5, 32}), {DType::bf16, {5, 32}}, {DType::boolean, {32}}}, [](const Operands& x) {
        const Tensor sum = x[0] + cast(x[1], DType::f32);
        return Operands{sum, cast(sum, DType::bf16), select(x[2], sum, 0.0), less(sum, 0.0)};
      });
}

TEST(PtxPrograms, MovementsBecomeIndices) {
  expect_right({f32({6, 10}), f32({10, 6}), f32({4, 10})}, [](const Operands& x) {
    const Tensor moved = transpose(x[1], {1, 0}) + reverse(x[0], 1);
    return Operands{moved + pad(x[2], 0, 1, 1) * pad(slice(x[0], 1, 0, 9, 2), 1, 0, 1, 1)};
  });
  expect_right({f32({4, 6, 8}), f32({24, 8}), f32({4, 6})}, [](const Operands& x) {
    const Tensor heads = reshape(x[0], {4, 6, 2, 4}) * 2.0;
    const Tensor rows = reshape(heads, {24, 8}) + x[1];
    const Tensor weights = broadcast_to(reshape(x[2], {24, 1}), {24, 8});
    return Operands{reshape(rows * weights, {4, 6, 8})};
  });
}

TEST(PtxPrograms, RandomGraphs) {
  constexpr int kGraphs = 20;
  GeneratedCounts counts;
  const std::shared_ptr<Device> device = generated_device(&counts);
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    RandomGraphOptions options;
    options.dtype = seed % 2 == 0 ? DType::f32 : DType::f64;
    options.mixed_dtypes = seed % 3 == 0;
    const RandomGraph random = random_graph(seed, options);
    ASSERT_EQ(first_difference(random.graph, random.inputs, device, {}), "")
        << describe(seed, random);
  }
  EXPECT_GT(counts.generated, 100);
}

}  // namespace
}  // namespace fullbore
