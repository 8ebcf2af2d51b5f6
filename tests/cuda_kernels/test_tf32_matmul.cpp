// Products of f32 rounded to tf32, kernels/matmul_tensor_core.cpp, on the machine that executes PTX: every layout and tile
// against the oracle, within what rounding allows; and exactly where that is known.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/ir/op_def.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/comparison.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

struct Case {
  int64_t batches = 1;
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, adds = false;
  int multiprocessors = 132;  ///< of one alone tiles are large

  Shape of_a() const { return transpose_a ? Shape{batches, k, m} : Shape{batches, m, k}; }
  Shape of_b() const { return transpose_b ? Shape{batches, n, k} : Shape{batches, k, n}; }
  std::string text() const {
    return fmt::format("{} x [{},{},{}], {}{}{}, {} multiprocessors", batches, m, n, k,
                       transpose_a ? "T" : "N", transpose_b ? "T" : "N", adds ? ", added" : "",
                       multiprocessors);
  }
};

/// A product that may round, of operands that are drawn or given.
struct Product {
  MaterialisedSample call;
  std::vector<const Literal*> operands;
  std::vector<TensorType> outputs;
  std::unique_ptr<cuda::CudaKernel> kernel;

  Product(const Case& of, const SampleInput& a, const SampleInput& b)
      : call(materialise(get_op(of.adds ? "matmul_add" : "matmul"), sample(of, a, b), DType::f32,
                         1)) {
    const Node& node = call.graph.nodes().front();
    const cuda::CardFacts card{.multiprocessors = of.multiprocessors};
    kernel = cuda::make_listed_kernel({call.graph, node, card}, nullptr);
    for (const Literal& input : call.inputs) operands.push_back(&input);
    for (const Value output : node.outputs) outputs.push_back(call.graph.type(output));
  }
  explicit Product(const Case& of)
      : Product(of, SampleInput::normal({DType::f32, of.of_a()}),
                SampleInput::normal({DType::f32, of.of_b()})) {}

  static Sample sample(const Case& of, const SampleInput& a, const SampleInput& b) {
    Sample made{
        .why = of.text(),
        .inputs = {a, b},
        .attributes = {
            {"tf32", true}, {"transpose_a", of.transpose_a}, {"transpose_b", of.transpose_b}}};
    if (of.adds)
      made.inputs.push_back(SampleInput::normal({DType::f32, {of.batches, of.m, of.n}}));
    else
      made.attributes.set("wide", false);
    return made;
  }

  const Node& node() const { return call.graph.nodes().front(); }
  /// What it makes, in every way that must give the same bits.
  Literal made(std::string* problem) const {
    const MachineResult run = run_in_all_ways(*kernel, operands, outputs);
    *problem = run.problem;
    return run.problem.empty() ? Literal::from_bytes(outputs[0], run.outputs[0].data()) : Literal();
  }
};

std::string check(const Case& of) {
  const Product product(of);
  if (product.kernel->launches().front().entry.find("tf32") == std::string::npos)
    return "another kernel: " + product.kernel->launches().front().entry;
  std::string problem;
  const Literal made = product.made(&problem);
  if (!problem.empty()) return problem;
  return compare(expect(product.call.graph, product.node(), product.operands)[0], made, 0);
}

// More than one tile in each direction and k beyond a multiple of 16, in rows of whole 16 bytes.
TEST(Tf32Matmul, EveryLayoutAgreesWithTheOracle) {
  for (const int multiprocessors : {132, 1})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Case of{.m = 132,
                      .n = 68,
                      .k = 44,
                      .transpose_a = transpose_a,
                      .transpose_b = transpose_b,
                      .multiprocessors = multiprocessors};
        EXPECT_EQ(check(of), "") << of.text();
      }
}

// Rows that begin anywhere, extents of one, nothing to contract.
TEST(Tf32Matmul, OddExtentsAgreeWithTheOracle) {
  for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{67, 33, 45},
                                {1, 129, 7},
                                {130, 1, 17},
                                {5, 3, 1},
                                {1, 1, 100},
                                {3, 4, 0},
                                {16, 8, 8},
                                {65, 9, 18}})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true}) {
        const Case of{
            .m = m, .n = n, .k = k, .transpose_a = transpose_a, .transpose_b = transpose_b};
        EXPECT_EQ(check(of), "") << of.text();
      }
}

TEST(Tf32Matmul, BatchesAndSumsAgreeWithTheOracle) {
  for (const Case& of : {Case{.batches = 3, .m = 17, .n = 20, .k = 33},
                         Case{.batches = 2, .m = 20, .n = 68, .k = 36, .transpose_b = true},
                         Case{.m = 70, .n = 66, .k = 130, .transpose_a = true, .adds = true},
                         Case{.batches = 2, .m = 9, .n = 5, .k = 20, .adds = true},
                         Case{.m = 4, .n = 4, .k = 0, .adds = true}})
    EXPECT_EQ(check(of), "") << of.text();
}

// Whole numbers below 2^11 are tf32, and sums of their products below 2^24 are f32.
TEST(Tf32Matmul, IsExactOfWhatTf32Represents) {
  for (const bool transposed : {false, true}) {
    const Case of{.m = 68, .n = 36, .k = 60, .transpose_a = transposed, .transpose_b = !transposed};
    const Product product(of, SampleInput::integers({DType::f32, of.of_a()}, -2047, 2048),
                          SampleInput::integers({DType::f32, of.of_b()}, -8, 9));
    std::string problem;
    const Literal made = product.made(&problem);
    ASSERT_EQ(problem, "");
    const Expected expected = expect(product.call.graph, product.node(), product.operands)[0];
    for (int64_t i = 0; i < made.elements(); ++i)
      ASSERT_EQ(made.at(i), expected.value.at(i)) << of.text() << ", element " << i;
  }
}

/// To nearest of 10 bits of mantissa, halves away from zero.
double rounded(double x) {
  if (x == 0) return x;
  const double step = std::ldexp(1.0, std::ilogb(x) - 10);
  return std::copysign(std::floor(std::abs(x) / step + 0.5) * step, x);
}

// A product with the identity is what the other operand is rounded to. Of bits that are drawn a few are halves.
TEST(Tf32Matmul, RoundsBothOperandsToNearestHalvesAwayFromZero) {
  constexpr int64_t kSize = 40;
  PhiloxStream draws(3);
  std::vector<double> identity(kSize * kSize, 0), drawn(kSize * kSize);
  for (int64_t i = 0; i < kSize; ++i) identity[static_cast<size_t>(i * kSize + i)] = 1;
  int halves = 0;
  for (double& x : drawn) {
    x = static_cast<double>(static_cast<float>(std::exp(3 * draws.normal()))) *
        (draws.below(2) == 0 ? -1 : 1);
    if (draws.below(4) != 0) continue;
    const double step = std::ldexp(1.0, std::ilogb(x) - 10);
    x = std::copysign((std::floor(std::abs(x) / step) + 0.5) * step, x);
    ++halves;
  }
  ASSERT_GT(halves, 100);
  const auto of = [&](const std::vector<double>& values) {
    return SampleInput::given({DType::f32, {1, kSize, kSize}}, values);
  };
  for (const bool transposed : {false, true})
    for (const bool of_a : {false, true}) {
      const Case square{
          .m = kSize, .n = kSize, .k = kSize, .transpose_a = transposed, .transpose_b = transposed};
      const Product product(square, of(of_a ? drawn : identity), of(of_a ? identity : drawn));
      std::string problem;
      const Literal made = product.made(&problem);
      ASSERT_EQ(problem, "");
      for (int64_t row = 0; row < kSize; ++row)
        for (int64_t column = 0; column < kSize; ++column) {
          const int64_t from = transposed ? column * kSize + row : row * kSize + column;
          ASSERT_EQ(made.at(row * kSize + column), rounded(drawn[static_cast<size_t>(from)]))
              << row << " " << column << (of_a ? ", a" : ", b") << (transposed ? ", T" : ", N");
        }
    }
}

// What is not finite stays so, in its own row; NaN too where its payload lies in bits that rounding cuts.
TEST(Tf32Matmul, KeepsWhatIsNotFinite) {
  const Case of{.m = 20, .n = 12, .k = 24};
  std::vector<double> a(static_cast<size_t>(of.m * of.k), 1);
  a[static_cast<size_t>(3 * of.k + 5)] = std::bit_cast<float>(0x7fa00001U);
  a[static_cast<size_t>(7 * of.k)] = std::numeric_limits<double>::infinity();
  a[static_cast<size_t>(8 * of.k + 23)] = std::numeric_limits<float>::max();
  const Product product(of, SampleInput::given({DType::f32, of.of_a()}, a),
                        SampleInput::uniform({DType::f32, of.of_b()}, 1, 2));
  std::string problem;
  const Literal made = product.made(&problem);
  ASSERT_EQ(problem, "");
  for (int64_t i = 0; i < made.elements(); ++i) {
    const int64_t row = i / of.n;
    EXPECT_EQ(std::isnan(made.at(i)), row == 3) << i;
    EXPECT_EQ(std::isinf(made.at(i)), row == 7 || row == 8) << i;
  }
}

// Whoever did not ask for it gets the kernel of before, of operands as they are.
TEST(Tf32Matmul, IsForNodesThatSaySo) {
  const Case of{.m = 64, .n = 64, .k = 64};
  for (const bool asked : {false, true}) {
    Sample sample = Product::sample(of, SampleInput::normal({DType::f32, of.of_a()}),
                                    SampleInput::normal({DType::f32, of.of_b()}));
    if (!asked)
      sample.attributes = {{"transpose_a", false}, {"transpose_b", false}, {"wide", false}};
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const MaterialisedSample call = materialise(get_op("matmul"), sample, dtype, 1);
      const cuda::CardFacts card{.capability = 80};
      const auto kernel =
          cuda::make_listed_kernel({call.graph, call.graph.nodes().front(), card}, nullptr);
      const bool rounds = asked && dtype == DType::f32;
      EXPECT_EQ(kernel->launches().front().entry.find("tf32") != std::string::npos, rounds)
          << dtype_name(dtype);
      EXPECT_EQ(kernel->description().find("as tf32") != std::string::npos, rounds)
          << dtype_name(dtype);
    }
  }
}

}  // namespace
}  // namespace fullbore
