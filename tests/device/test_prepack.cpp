// Matrices that are packed by a node of their own, and matmuls by them: the bits of matmuls that pack.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "../support/comparison.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/cpu/gemm/amx_matmul.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/ops/ops.h"
#include "kernel_runner.h"

namespace fullbore {
namespace {

using cpu::Contraction;
using testing_support::compare;
using testing_support::expect;
using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

/// A matmul of b as it lies and of a prepacked b.
struct Case {
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
  DType in, out;
  int64_t block;

  bool vnni() const { return in == DType::bf16 && block % 2 == 0; }
  std::string text() const {
    return fmt::format("{} x {} -> {} [{},{}]{} [{},{}]{} prepacked in blocks of {}", batch,
                       dtype_name(in), dtype_name(out), m, k, transpose_a ? "T" : "", k, n,
                       transpose_b ? "T" : "", block);
  }
  Graph graph() const {
    const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
      return TensorType{in, transposed ? Shape{batch, columns, rows} : Shape{batch, rows, columns}};
    };
    GraphBuilder builder;
    const Tensor a = builder.input("a", Role::batch, matrix(m, k, transpose_a));
    const Tensor b = builder.input("b", Role::batch, matrix(k, n, transpose_b));
    builder.output("y", matmul(a, b, {transpose_a, transpose_b, out}));
    const Tensor packed = builder.emit_one(
        "prepack", {b},
        {{"transposed", transpose_b}, {"block", block}, {"vnni", int64_t{vnni() ? 2 : 1}}}, {});
    builder.output(
        "z",
        builder.emit_one("prepacked_matmul", {a, packed},
                         {{"transpose_a", transpose_a}, {"columns", n}, {"wide", out != in}}, {}));
    return builder.take();
  }
};

std::vector<Literal> random_inputs(const Graph& graph) {
  PhiloxStream draws(17);
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal& literal = inputs.emplace_back(graph.type(input.value));
    for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
    literal.round();
  }
  return inputs;
}

/// The result of a kernel for a node; what is wrong with it goes to `problem`.
Literal run(const Graph& graph, const Node& node, const Kernel& kernel,
            const std::vector<const Literal*>& operands, std::string& problem) {
  const TensorType& type = graph.type(node.outputs[0]);
  const RunResult result = run_kernel_in_all_ways(kernel, operands, {type});
  problem = result.problem;
  if (!problem.empty()) return Literal(type);
  Literal made = Literal::from_bytes(type, result.outputs[0].data());
  problem = compare(expect(graph, node, operands)[0], made, 0);
  return made;
}

std::string check(const Case& c, VectorUnit unit) {
  const Graph graph = c.graph();
  const Node &plain = graph.nodes()[0], &pack = graph.nodes()[1], &prepacked = graph.nodes()[2];
  const std::vector<Literal> inputs = random_inputs(graph);
  KernelRequest pack_request(graph, pack, 1);
  const Contraction whole = Contraction::of(KernelRequest(graph, plain, 1));
  const Contraction of_prepacked = Contraction::of(KernelRequest(graph, prepacked, 1));
  const auto copy = cpu::make_prepack(pack_request);
  const auto expected =
      c.vnni() ? cpu::make_vnni_matmul(whole) : cpu::make_tiled_matmul(whole, unit);
  const auto gemm = cpu::make_prepacked_matmul(of_prepacked, unit);
  std::string problem;
  const Literal packed = run(graph, pack, *copy, {&inputs[1]}, problem);
  if (!problem.empty()) return copy->description() + ": " + problem;
  const Literal y = run(graph, plain, *expected, {&inputs[0], &inputs[1]}, problem);
  if (!problem.empty()) return expected->description() + ": " + problem;
  const Literal z = run(graph, prepacked, *gemm, {&inputs[0], &packed}, problem);
  if (!problem.empty()) return gemm->description() + ": " + problem;
  for (int64_t i = 0; i < y.elements(); ++i)
    if (y.at(i) != z.at(i))
      return fmt::format("{}: element {} is {}, prepacked, by the matmul itself {}",
                         gemm->description(), i, z.at(i), y.at(i));
  return "";
}

struct Dtypes {
  DType in, out;
};
class PrepackedMatmuls : public ::testing::TestWithParam<Dtypes> {};

// Blocks narrower and wider than the units' own, with and without columns that are missing; several tiles, several
// passes over depth, a depth beyond what a matmul packs at once.
TEST_P(PrepackedMatmuls, HaveTheBitsOfMatmulsThatPack) {
  struct Extents {
    int64_t batch, m, n, k;
  };
  const auto [in, out] = GetParam();
  int transposed = 0;
  for (const Extents& e : {Extents{1, 1, 1, 1},
                           {1, 3, 5, 0},
                           {0, 3, 5, 2},
                           {1, 0, 5, 2},
                           {2, 17, 33, 7},
                           {1, 20, 100, 65},
                           {1, 70, 131, 20},
                           {1, 7, 70, 1601},
                           {1, 18, 3, 9001}}) {
    for (const int64_t block : {1, 16, 64, 101}) {
      ++transposed;  // by turns
      const Case c{e.batch, e.m, e.n,  e.k, (transposed & 1) != 0, (transposed & 2) != 0,
                   in,      out, block};
      if (c.vnni() && !this_processor().avx512_bf16) continue;
      for (const VectorUnit unit : {VectorUnit::baseline, VectorUnit::avx2, VectorUnit::avx512}) {
        if (unit > this_processor().vector_unit) continue;
        if (c.vnni() && unit != VectorUnit::baseline) continue;  // VNNI pairs have one unit
        EXPECT_EQ(check(c, unit), "") << c.text();
      }
    }
    ++transposed;  // the next extents meet each block transposed otherwise
  }
}

// No rows, rows that fill no tile, one and several; a last block with columns missing; results of both dtypes.
TEST(MatmulsByTiles, OfPrepackedOperandsAgreeWithTheOracle) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{0, 40, 64},
                                {1, 32, 32},
                                {5, 81, 96},
                                {16, 64, 768},
                                {33, 257, 64},
                                {64, 96, 1600},
                                {128, 40, 160},
                                {100, 33, 32}})
    for (const bool transposed : {false, true})
      for (const DType out : {DType::bf16, DType::f32}) {
        const Case c{1, m, n, k, false, transposed, DType::bf16, out, cpu::kAmxColumns};
        const Graph graph = c.graph();
        const Node &pack = graph.nodes()[1], &prepacked = graph.nodes()[2];
        const std::vector<Literal> inputs = random_inputs(graph);
        KernelRequest request(graph, pack, 1);
        std::string problem, why_not;
        const Literal packed = run(graph, pack, *cpu::make_prepack(request), {&inputs[1]}, problem);
        ASSERT_EQ(problem, "") << c.text();
        const auto gemm =
            cpu::make_amx_matmul(Contraction::of(KernelRequest(graph, prepacked, 1)), &why_not);
        ASSERT_NE(gemm, nullptr) << why_not;
        run(graph, prepacked, *gemm, {&inputs[0], &packed}, problem);
        EXPECT_EQ(problem, "") << c.text();
      }
}

// What was compiled before stays as it is.
TEST(MatmulsByTiles, StayWhenTheProcessorIsLimited) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  const Case c{1, 5, 64, 96, false, false, DType::bf16, DType::bf16, cpu::kAmxColumns};
  const Graph graph = c.graph();
  const Node &pack = graph.nodes()[1], &prepacked = graph.nodes()[2];
  const std::vector<Literal> inputs = random_inputs(graph);
  KernelRequest request(graph, pack, 1);
  std::string problem, why_not;
  const Literal packed = run(graph, pack, *cpu::make_prepack(request), {&inputs[1]}, problem);
  const auto gemm =
      cpu::make_amx_matmul(Contraction::of(KernelRequest(graph, prepacked, 1)), &why_not);
  ASSERT_NE(gemm, nullptr) << why_not;
  limit_processor("avx2", "test");
  run(graph, prepacked, *gemm, {&inputs[0], &packed}, problem);
  limit_processor("auto", "test");
  EXPECT_EQ(problem, "");
}

TEST(MatmulsByTiles, DeclineOtherOperands) {
  if (!this_processor().amx_bf16) GTEST_SKIP() << "this processor has no tiles for bf16";
  const auto why = [](const Case& c) {
    const Graph graph = c.graph();
    std::string why_not;
    EXPECT_EQ(
        cpu::make_amx_matmul(Contraction::of(KernelRequest(graph, graph.nodes()[2], 1)), &why_not),
        nullptr);
    return why_not;
  };
  const Case fits{1, 4, 64, 32, false, false, DType::bf16, DType::bf16, cpu::kAmxColumns};
  Case c = fits;
  c.k = 33;
  EXPECT_EQ(why(c), "a depth of 33 is no multiple of 32");
  c = fits, c.block = 64;
  EXPECT_EQ(why(c), "blocks of 64 columns, not of 32");
  c = fits, c.batch = 2;
  EXPECT_EQ(why(c), "needs one matrix, and rows as they lie");
  c = fits, c.in = c.out = DType::f16;
  EXPECT_EQ(why(c), "needs VNNI pairs of bf16");
}

INSTANTIATE_TEST_SUITE_P(
    All, PrepackedMatmuls,
    ::testing::Values(Dtypes{DType::f32, DType::f32}, Dtypes{DType::f64, DType::f64},
                      Dtypes{DType::bf16, DType::bf16}, Dtypes{DType::bf16, DType::f32},
                      Dtypes{DType::f16, DType::f16}),
    [](const auto& each) {
      return fmt::format("{}_to_{}", dtype_name(each.param.in), dtype_name(each.param.out));
    });

}  // namespace
}  // namespace fullbore
