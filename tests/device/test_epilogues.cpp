// A matmul and what is behind it as one kernel, against the two one after the other: the same sums and
// the same arithmetic, so the same bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "kernel_runner.h"

namespace fullbore {
namespace {

using testing_support::run_kernel_in_all_ways;
using testing_support::RunResult;

using Operands = std::vector<Tensor>;
/// What is made of a matmul [m, n] and further operands.
using Chain = std::function<Operands(const Tensor&, const Operands&)>;

struct Matmul {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false;
  DType in = DType::f32, out = DType::f32;
};

struct EpilogueCase {
  std::string name;
  Chain chain;
  std::function<std::vector<TensorType>(const Matmul&)> operands;  ///< further ones
  bool large = false;                                              ///< on large matmuls too
};

std::vector<Literal> random_literals(const std::vector<TensorType>& types) {
  std::vector<Literal> result;
  PhiloxStream draws(11);
  for (const TensorType& type : types) {
    Literal literal(type);
    for (int64_t i = 0; i < type.elements(); ++i)
      literal.put(i, is_floating(type.dtype) ? draws.normal() : double(draws.below(9)));
    literal.round();
    result.push_back(std::move(literal));
  }
  return result;
}

std::vector<TensorType> output_types(const Graph& graph) {
  std::vector<TensorType> types;
  for (Value output : graph.nodes()[0].outputs) types.push_back(graph.type(output));
  return types;
}

// One node of the CPU on the operands, in all ways that must give the same bits.
std::vector<std::vector<char>> run_node(const Graph& graph, const std::vector<Literal>& inputs) {
  const auto compiler = open_device("cpu")->compiler();
  const auto kernel = compiler->compile(graph, graph.nodes()[0], 3);
  compiler->finish();
  std::vector<const Literal*> operands;
  for (const Literal& input : inputs) operands.push_back(&input);
  const RunResult result = run_kernel_in_all_ways(*kernel, operands, output_types(graph));
  EXPECT_EQ(result.problem, "") << kernel->description();
  return result.outputs;
}

// The node `write` makes on inputs of the types: its body if it is `fused`, or the node itself.
Graph graph_of(const std::vector<TensorType>& types,
               const std::function<Operands(const Operands&)>& write, bool as_body) {
  const auto traced = [&](GraphBuilder& builder) {
    Operands inputs;
    for (const TensorType& type : types)
      inputs.push_back(builder.input(fmt::format("x{}", inputs.size()), Role::batch, type));
    return inputs;
  };
  GraphBuilder builder("step");
  const Operands inputs = traced(builder);
  Operands results;
  if (as_body) {
    GraphBuilder body("fused");
    const Operands made = write(traced(body));
    for (size_t i = 0; i < made.size(); ++i) body.output(fmt::format("y{}", i), made[i]);
    results = fused(builder, inputs, std::make_shared<const Graph>(body.take()));
  } else {
    results = write(inputs);
  }
  for (size_t i = 0; i < results.size(); ++i) builder.output(fmt::format("y{}", i), results[i]);
  return builder.take();
}

TensorType matrix(int64_t rows, int64_t columns, bool transposed, DType dtype) {
  return {dtype, transposed ? Shape{columns, rows} : Shape{rows, columns}};
}

// As one node, the matmul kept or not.
void expect_same(const Matmul& p, const EpilogueCase& each) {
  const std::vector<TensorType> operands = {matrix(p.m, p.k, p.transpose_a, p.in),
                                            matrix(p.k, p.n, p.transpose_b, p.in)};
  const TensorType gemm{p.out, {p.m, p.n}};
  const std::vector<TensorType> others = each.operands(p);
  std::vector<TensorType> types = operands;
  types.insert(types.end(), others.begin(), others.end());
  const std::vector<Literal> inputs = random_literals(types);
  const auto multiply = [&](const Operands& x) {
    return matmul(x[0], x[1], {p.transpose_a, p.transpose_b, p.out});
  };

  const auto together = [&](bool kept) {
    return run_node(graph_of(
                        types,
                        [&](const Operands& x) {
                          const Tensor y = multiply(x);
                          Operands made = each.chain(y, Operands(x.begin() + 2, x.end()));
                          if (kept) made.push_back(y);
                          return made;
                        },
                        true),
                    inputs);
  };
  auto matmul_apart =
      run_node(graph_of(
                   operands, [&](const Operands& x) { return Operands{multiply(x)}; }, false),
               {inputs[0], inputs[1]});
  // Tiles for bf16 sum in another order than the kernels with epilogues, to which the device then gives no such matmul.
  if (!open_device("cpu", 1)->target().epilogues.operand_dtypes.contains(p.in))
    matmul_apart[0] = together(true).back();
  std::vector<TensorType> chain_types = {gemm};
  chain_types.insert(chain_types.end(), others.begin(), others.end());
  std::vector<Literal> chain_inputs = {Literal::from_bytes(gemm, matmul_apart[0].data())};
  chain_inputs.insert(chain_inputs.end(), inputs.begin() + 2, inputs.end());
  const auto chain_apart = run_node(
      graph_of(
          chain_types,
          [&](const Operands& x) { return each.chain(x[0], Operands(x.begin() + 1, x.end())); },
          true),
      chain_inputs);

  for (const bool kept : {false, true}) {
    const auto found = together(kept);
    const std::string what =
        fmt::format("{} of {}x{}x{} {}{} {} to {}{}", each.name, p.m, p.n, p.k, p.transpose_a,
                    p.transpose_b, dtype_name(p.in), dtype_name(p.out), kept ? ", kept" : "");
    for (size_t i = 0; i < chain_apart.size(); ++i)
      ASSERT_EQ(found[i], chain_apart[i]) << what << ", output " << i;
    if (kept) {
      ASSERT_EQ(found.back(), matmul_apart[0]) << what;
    }
  }
}

Tensor in_f32(const Tensor& x) { return is_low_precision(x.dtype()) ? cast(x, DType::f32) : x; }
DType wide(const Matmul& p) { return is_low_precision(p.out) ? DType::f32 : p.out; }

std::vector<EpilogueCase> cases() {
  return {
      {"bias and activation",
       [](const Tensor& y, const Operands& x) { return Operands{tanh(in_f32(y) + x[0])}; },
       [](const Matmul& p) {
         return std::vector<TensorType>{{wide(p), {p.n}}};
       },
       true},
      {"residual, and a cast",
       [](const Tensor& y, const Operands& x) {
         const Tensor sum = in_f32(y) + x[0];
         return Operands{sum, cast(sum * sum, DType::bf16), less(sum, 0.0)};
       },
       [](const Matmul& p) {
         return std::vector<TensorType>{{wide(p), {p.m, p.n}}};
       }},
      {"one number per row",
       [](const Tensor& y, const Operands& x) { return Operands{in_f32(y) * x[0]}; },
       [](const Matmul& p) {
         return std::vector<TensorType>{{wide(p), {p.m, 1}}};
       }},
      {"halves of a row apart",
       [](const Tensor& y, const Operands& x) {
         const Shape& shape = y.shape();
         if (shape[1] % 2 != 0) return Operands{neg(in_f32(y))};
         const Tensor heads = reshape(in_f32(y), {shape[0], 2, shape[1] / 2});
         return Operands{heads * reshape(x[0], {2, 1})};
       },
       [](const Matmul& p) {
         return std::vector<TensorType>{{wide(p), {2}}};
       }},
      {"normalised rows",
       [](const Tensor& y, const Operands& x) {
         const Tensor sum = in_f32(y) + x[0];
         const auto width = static_cast<double>(y.dim(1));
         const Tensor centred = sum - reduce_sum(sum, {1}, true) * (1 / width);
         const Tensor variance = reduce_sum(centred * centred, {1}, true) * (1 / width);
         return Operands{centred * rsqrt(variance + 1e-5), variance};
       },
       [](const Matmul& p) {
         return std::vector<TensorType>{{wide(p), {p.m, p.n}}};
       },
       true},
      // The pass leaves it apart; the kernel is right all the same.
      {"a sum of columns",
       [](const Tensor& y, const Operands&) {
         return Operands{reduce_sum(in_f32(y) * in_f32(y), {0})};
       },
       [](const Matmul&) { return std::vector<TensorType>{}; }},
  };
}

// More rows than dot matmuls take, for their sums are cut differently; but one case whose matrix lies
// as only a packed operand reads it.
const Matmul kMatmuls[] = {
    {.m = 17, .n = 2, .k = 1},
    {.m = 1, .n = 130, .k = 40},
    {.m = 96, .n = 64, .k = 7, .transpose_a = true},
    {.m = 65, .n = 130, .k = 33, .transpose_b = true},
    {.m = 110, .n = 200, .k = 20},
    {.m = 20, .n = 66, .k = 770, .transpose_b = true},
    {.m = 17, .n = 70, .k = 4700},
    {.m = 40, .n = 33, .k = 0},
    {.m = 150, .n = 131, .k = 50, .transpose_a = true, .transpose_b = true},
};

class Epilogues : public ::testing::TestWithParam<std::pair<DType, DType>> {};

TEST_P(Epilogues, GiveTheBitsOfTwoKernels) {
  for (const EpilogueCase& each : cases())
    for (Matmul gemm : kMatmuls) {
      // Many passes over the depth matter to whether tiles are whole rows, not to what is done with them.
      if (gemm.m * gemm.n * gemm.k > 1000000 && !each.large) continue;
      gemm.in = GetParam().first;
      gemm.out = GetParam().second;
      expect_same(gemm, each);
      if (HasFatalFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, Epilogues,
    ::testing::Values(std::pair{DType::f32, DType::f32}, std::pair{DType::f64, DType::f64},
                      std::pair{DType::bf16, DType::bf16}, std::pair{DType::bf16, DType::f32},
                      std::pair{DType::f16, DType::f16}),
    [](const auto& pair) {
      return fmt::format("{}_to_{}", dtype_name(pair.param.first), dtype_name(pair.param.second));
    });

}  // namespace
}  // namespace fullbore
