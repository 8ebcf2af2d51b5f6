// Products of 8-bit floats, kernels/matmul_fp8_sm89.cpp, on the machine that executes PTX: against sums that f32 has exactly,
// and against the oracle; and what is planted is met.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/fp8.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/card_run.h"
#include "tests/support/comparison.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

struct Case {
  int64_t m, n, k;
  bool transpose_a = false, transpose_b = false, is_wide = true;
  DType dtype = DType::bf16;
  Fp8Format format_a = Fp8Format::e4m3, format_b = Fp8Format::e4m3;
  int multiprocessors = 132;  ///< few: tiles of 128

  std::string text() const {
    return fmt::format("[{},{},{}] {}{} {} {} by {}{}, {} multiprocessors", m, n, k,
                       transpose_a ? "T" : "N", transpose_b ? "T" : "N", dtype_name(dtype),
                       fp8_facts(format_a).name, fp8_facts(format_b).name, is_wide ? ", wide" : "",
                       multiprocessors);
  }
};

/// Whole numbers of 3 bits and their halves, which both formats have: sums are exact, in whatever order. Scales are powers
/// of two.
Sample sample_of(const Case& of) {
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed, int64_t shift) {
    const Shape shape = transposed ? Shape{columns, rows} : Shape{rows, columns};
    constexpr double kNumbers[] = {0, 1, -2, 3, 0.5, -1.5, 2, -0.25, 4, -3, -6};
    std::vector<double> values;
    for (int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(kNumbers[(i * 7 + i / 13 + shift) % 11]);
    return SampleInput::given({of.dtype, shape}, values);
  };
  const auto scale = [](double value) { return SampleInput::given({DType::f32, {}}, {value}); };
  return {.why = "exact sums",
          .inputs = {matrix(of.m, of.k, of.transpose_a, 0), matrix(of.k, of.n, of.transpose_b, 5),
                     scale(16), scale(8)},
          .attributes = {{"format_a", std::string(fp8_facts(of.format_a).name)},
                         {"format_b", std::string(fp8_facts(of.format_b).name)},
                         {"transpose_a", of.transpose_a},
                         {"transpose_b", of.transpose_b},
                         {"wide", of.is_wide}}};
}

struct Product {
  MaterialisedSample call;
  std::vector<const Literal*> operands;
  std::vector<TensorType> outputs;
  std::unique_ptr<cuda::CudaKernel> kernel;
  std::string why_not;

  Product(const Sample& sample, const cuda::CardFacts& card)
      : call(materialise(get_op("fp8_matmul"), sample, DType::f32, 1)) {
    const Node& node = call.graph.nodes().front();
    kernel = cuda::make_listed_kernel({call.graph, node, card}, &why_not);
    for (const Literal& input : call.inputs) operands.push_back(&input);
    for (const Value output : node.outputs) outputs.push_back(call.graph.type(output));
  }
  Expected expected() const {
    return expect(call.graph, call.graph.nodes().front(), operands).front();
  }
};

/// "" or what is wrong. `exactly`: to the bit.
std::string check(const Case& of, bool exactly = true) {
  const Product run(sample_of(of), {.multiprocessors = of.multiprocessors});
  if (!run.kernel) return run.why_not;
  const MachineResult made = run_in_all_ways(*run.kernel, run.operands, run.outputs);
  if (!made.problem.empty()) return made.problem;
  Expected expected = run.expected();
  if (exactly) expected.slack.assign(expected.slack.size(), 0);
  return compare(expected, Literal::from_bytes(run.outputs[0], made.outputs[0].data()), 0);
}

TEST(Fp8Products, OfExactSumsAreExact) {
  for (const DType dtype : {DType::bf16, DType::f32})
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const int multiprocessors : {1, 132}) {
          // One row and column more than a tile, one of k more than a stage; then rows of 16 bytes.
          EXPECT_EQ(check({129, 65, 65, transpose_a, transpose_b, true, dtype, Fp8Format::e4m3,
                           Fp8Format::e4m3, multiprocessors}),
                    "")
              << dtype_name(dtype) << transpose_a << transpose_b << multiprocessors;
          EXPECT_EQ(check({64, 136, 192, transpose_a, transpose_b, true, dtype, Fp8Format::e5m2,
                           Fp8Format::e4m3, multiprocessors}),
                    "")
              << dtype_name(dtype) << transpose_a << transpose_b << multiprocessors;
        }
}

TEST(Fp8Products, OfAllFormatsAndEdgesAreExact) {
  for (const Fp8Format a : {Fp8Format::e4m3, Fp8Format::e5m2})
    for (const Fp8Format b : {Fp8Format::e4m3, Fp8Format::e5m2})
      for (const Case& of : {Case{1, 1, 1},
                             {5, 7, 3},
                             {16, 8, 32},
                             {17, 9, 33},
                             {63, 64, 64},
                             {1, 130, 16},
                             {33, 1, 127}}) {
        Case with = of;
        with.format_a = a, with.format_b = b;
        EXPECT_EQ(check(with), "") << with.text();
        with.is_wide = false;
        EXPECT_EQ(check(with, false), "") << with.text();
      }
}

TEST(Fp8Products, NeedACardAndADriverThatHaveThem) {
  const auto refusal = [](const cuda::CardFacts& card) {
    return Product(sample_of({5, 7, 3}), card).why_not;
  };
  EXPECT_EQ(refusal({.capability = 89}), "");
  EXPECT_EQ(refusal({.capability = 120}), "");
  EXPECT_EQ(refusal({.capability = 86}),
            "tensor cores: compute capability 8.9 or later is needed, the card has 8.6");
  EXPECT_EQ(refusal({.driver = 12030}),
            "tensor cores: a driver of CUDA 12.4 or later is needed, this one is of 12.3");
}

// What a card sums in few bits is allowed for; a wrong scale or format is not.
TEST(Fp8Products, WithAWrongScaleOrFormatAreSeen) {
  for (const char* const wrong : {"scale_a", "scale_b", "format_a", "format_b", "transpose_b"}) {
    const std::string what = wrong;
    Sample sample = sample_of({20, 20, 40});
    for (size_t i : {0, 1}) sample.inputs[i] = SampleInput::normal(sample.inputs[i].type);
    const Product right(sample, {});
    if (what == "scale_a") sample.inputs[2].values = {17};
    if (what == "scale_b") sample.inputs[3].values = {7};
    if (what == "format_a" || what == "format_b") sample.attributes.set(what, std::string("e5m2"));
    if (what == "transpose_b") sample.inputs[1].type.shape = {20, 40};
    if (what == "transpose_b") sample.attributes.set(what, true);
    const Product changed(sample, {});
    ASSERT_TRUE(right.kernel && changed.kernel);
    // The operands of the right one, by the kernel of the other; scales are operands.
    std::vector<const Literal*> operands = right.operands;
    if (what.starts_with("scale")) operands[2] = changed.operands[2];
    if (what == "scale_b") operands[3] = changed.operands[3];
    const MachineResult made = run_on_machine(*changed.kernel, operands, right.outputs, {});
    ASSERT_EQ(made.problem, "");
    EXPECT_NE(
        compare(right.expected(), Literal::from_bytes(right.outputs[0], made.outputs[0].data()), 0),
        "")
        << what;
  }
}

// Each barrier removed in turn, of two stages and of an end that reuses them.
TEST(Fp8Products, WithoutABarrierAreMet) {
  if (runs_on_card()) GTEST_SKIP() << "a card does not tell what is planted";
  const Product run(sample_of({64, 64, 130}), {});
  ASSERT_TRUE(run.kernel);
  const cuda::Launch& launch = run.kernel->launches().front();
  const MachineResult intact = run_on_machine(*run.kernel, run.operands, run.outputs, {});
  ASSERT_EQ(intact.problem, "");
  int removed = 0;
  for (const char* const barrier : {"bar.sync", "bar.warp.sync"})
    for (size_t at = launch.module->ptx.find(barrier); at != std::string::npos;
         at = launch.module->ptx.find(barrier, at + 1)) {
      std::string text = launch.module->ptx;
      const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
      text.erase(begin, end - begin);
      cuda::Launch changed = launch;
      changed.module = std::make_shared<const cuda::Module>(cuda::Module{launch.entry, text});
      const cuda::CudaKernel kernel({changed}, {.text = "changed"});
      const MachineResult made = run_on_machine(kernel, run.operands, run.outputs, {});
      ++removed;
      // The last of a warp is for rows that it would stage next.
      const bool is_last = launch.module->ptx.find("bar.warp.sync", at + 1) == std::string::npos &&
                           std::string(barrier) == "bar.warp.sync";
      if (!is_last) {
        EXPECT_TRUE(!made.problem.empty() || made.outputs != intact.outputs) << at;
      }
    }
  EXPECT_GE(removed, 2 + 4) << "two of the block, two of a warp for each 16 rows";
}

}  // namespace
}  // namespace fullbore
