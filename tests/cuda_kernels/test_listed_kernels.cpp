// Each hand-written kernel for CUDA devices, on the machine that executes PTX, against the oracle: every sample of its op
// and random ones, in every dtype, in any order of threads, and without races.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/ir/op_def.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/comparison.h"
#include "tests/support/random_samples.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

// AddressSanitizer makes the machine several times as slow, and watches the host alone.
#if defined(__SANITIZE_ADDRESS__)
constexpr int kRandomSamples = 1;
#else
constexpr int kRandomSamples = 8;
#endif

std::vector<TensorType> output_types(const Graph& graph, const Node& node) {
  std::vector<TensorType> types;
  for (const Value output : node.outputs) types.push_back(graph.type(output));
  return types;
}

/// "" or what is wrong with a kernel on these operands. `tamper`: changes what it made before that is looked at.
using Tamper = void (*)(std::vector<char>& bytes);
std::string check(const Graph& graph, const Node& node, const cuda::CudaKernel& kernel,
                  const std::vector<const Literal*>& operands, Tamper tamper) {
  const std::vector<TensorType> types = output_types(graph, node);
  MachineResult run = run_in_all_ways(kernel, operands, types);
  if (!run.problem.empty()) return run.problem;
  if (tamper != nullptr) tamper(run.outputs.front());
  const std::vector<Expected> expected = expect(graph, node, operands);
  for (size_t o = 0; o < types.size(); ++o) {
    std::string problem =
        compare(expected[o], Literal::from_bytes(types[o], run.outputs[o].data()), o);
    if (!problem.empty()) return problem;
  }
  return "";
}

std::string check(const OpDef& op, const Sample& sample, DType dtype,
                  const cuda::CardFacts& card = {}, Tamper tamper = nullptr) {
  const MaterialisedSample call = materialise(op, sample, dtype, 1);
  const Node& node = call.graph.nodes().front();
  std::string why_not;
  const auto kernel = cuda::make_listed_kernel({call.graph, node, card}, &why_not);
  if (!kernel) return "no kernel: " + why_not;
  std::vector<const Literal*> operands;
  for (const Value input : node.inputs) {
    const auto at = std::ranges::find(call.graph.inputs(), input, &Graph::Input::value);
    operands.push_back(&call.inputs[static_cast<size_t>(at - call.graph.inputs().begin())]);
  }
  return check(call.graph, node, *kernel, operands, tamper);
}

/// A composite of other dtypes is decomposed.
bool is_native(const OpDef& op, const Sample& sample, DType dtype) {
  const auto composites = cuda::listed_composites();
  const auto found = composites.find(&op);
  return found == composites.end() ||
         found->second.contains(sample_dtype(sample.inputs.front().type.dtype, dtype));
}

std::vector<const OpDef*> ops() {
  const auto listed = cuda::listed_ops();
  std::vector<const OpDef*> all(listed.begin(), listed.end());
  std::ranges::sort(all, {}, &OpDef::name);
  return all;
}

class EachListedKernel : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(EachListedKernel, AgreeWithTheOracle) {
  const OpDef& op = *GetParam();
  std::vector<Sample> samples = op.samples();
  for (Sample& sample : random_samples(op, 1, kRandomSamples)) samples.push_back(std::move(sample));
  for (const DType dtype : sample_dtypes(op))
    for (const Sample& sample : samples) {
      if (!is_native(op, sample, dtype)) continue;
      EXPECT_EQ(check(op, sample, dtype), "")
          << op.name << ", " << sample.why << ", " << dtype_name(dtype);
    }
}

INSTANTIATE_TEST_SUITE_P(All, EachListedKernel, ::testing::ValuesIn(ops()),
                         [](const auto& op) { return std::string(op.param->name); });

// Tiles are large where they leave no multiprocessor without work: so they are for a card that has one alone.
TEST(ListedKernels, LargeTilesAgreeWithTheOracle) {
  const OpDef& op = get_op("matmul");
  std::vector<Sample> samples = op.samples();
  for (Sample& sample : random_samples(op, 2, 4)) samples.push_back(std::move(sample));
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const Sample& sample : samples)
      EXPECT_EQ(check(op, sample, dtype, {.multiprocessors = 1}), "")
          << sample.why << ", " << dtype_name(dtype);
}

// Of cards without warpgroup products, with small tiles and with large ones.
TEST(ListedKernels, BiasesOfTensorCoresAgreeWithTheOracle) {
  const auto sample_of = [](DType dtype, const Shape& a, const Shape& b, int64_t columns,
                            bool transpose_b) {
    return Sample{.why = a.text() + " by " + b.text(),
                  .inputs = {SampleInput::normal({dtype, a}), SampleInput::normal({dtype, b}),
                             SampleInput::normal({DType::f32, {columns}})},
                  .attributes = {{"transpose_a", false}, {"transpose_b", transpose_b}}};
  };
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const int multiprocessors : {1, 132})
      for (const Sample& sample :
           {sample_of(dtype, {17, 33}, {130, 33}, 130, true),
            sample_of(dtype, {136, 40}, {40, 72}, 72, false),
            sample_of(dtype, {2, 5, 8}, {2, 8, 16}, 16, false),
            sample_of(dtype, {3, 0}, {0, 4}, 4, false), sample_of(dtype, {1, 9}, {9, 1}, 1, false)})
        EXPECT_EQ(check(get_op("matmul_bias"), sample, DType::f32,
                        {.capability = 80, .multiprocessors = multiprocessors}),
                  "")
            << sample.why << ", " << dtype_name(dtype) << ", " << multiprocessors;
}

/// Heads of more keys and values than a tile has: an op's sample with chunks and resets, widened.
Sample widened(const OpDef& op, int64_t keys, int64_t values, bool inclusive, bool one_decay) {
  const Shape k{1, 21, 1, keys}, v{1, 21, 2, values}, states{2, 1, 2, keys, values};
  const auto normal = [](const Shape& shape) { return SampleInput::normal({DType::f32, shape}); };
  const SampleInput g =
      SampleInput::uniform({DType::f32, {1, 21, 2, one_decay ? 1 : keys}}, -2, -0.01);
  const bool is_gradient = op.name == "recurrence_gradient";
  Sample sample{.why = fmt::format("{} keys, {} values", keys, values),
                .inputs = {normal(k), normal(k), normal(v)},
                .attributes = {{"chunk", int64_t{17}}, {"inclusive", inclusive}, {"resets", true}}};
  if (is_gradient) sample.inputs.push_back(normal(v));
  sample.inputs.push_back(g);
  if (!inclusive) sample.inputs.push_back(normal({2, keys}));
  sample.inputs.push_back(normal(states));
  if (is_gradient) sample.inputs.push_back(normal(states));
  sample.inputs.push_back(SampleInput::integers({DType::boolean, {1, 21}}, 0, 1.2));
  return sample;
}

TEST(ListedKernels, RecurrencesOfWideHeadsAgreeWithTheOracle) {
  for (const char* const name : {"recurrence_outputs", "recurrence_gradient"})
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const auto& [keys, values, inclusive, one_decay] : {std::tuple{130, 5, false, false},
                                                               {5, 70, false, false},
                                                               {70, 40, false, true},
                                                               {40, 34, true, false},
                                                               {66, 70, true, true}}) {
        const Sample sample = widened(get_op(name), keys, values, inclusive, one_decay);
        EXPECT_EQ(check(get_op(name), sample, dtype), "")
            << name << ", " << sample.why << ", " << dtype_name(dtype);
      }
}

// Wider than a block's columns; more places than its warps have parts of; a window that begins within a part; a pool that ends
// within a page; pages in 8 bits; nothing seen.
TEST(ListedKernels, PagedAttentionOfSeveralBlocksAgreesWithTheOracle) {
  struct Call {
    int64_t heads, groups, width, pages, page_tokens, window, missing;
    DType of_pages;
  };
  constexpr int64_t kRows = 3;
  for (const Call& call :
       {Call{2, 1, 300, 3, 16, 0, 0, DType::i32}, Call{4, 2, 64, 7, 16, 0, 0, DType::i64},
        Call{2, 2, 33, 9, 7, 18, 3, DType::i8}, Call{1, 1, 65, 40, 1, 39, 0, DType::u8}})
    for (const auto& [dtype, kept] : {std::pair{DType::f32, DType::f32},
                                      {DType::f32, DType::bf16},
                                      {DType::f32, DType::f16},
                                      {DType::bf16, DType::bf16},
                                      {DType::f16, DType::f16}}) {
      const Shape pool{kRows * call.pages * call.page_tokens - call.missing,
                       call.groups * call.width};
      const auto places = static_cast<double>(call.pages * call.page_tokens);
      std::vector<double> numbers;  // the last page of the pool is the last of the first row
      for (int64_t row = 0; row < kRows; ++row)
        for (int64_t page = 1; page <= call.pages; ++page)
          numbers.push_back(static_cast<double>((kRows - 1 - row) * call.pages + page - 1));
      const Sample sample{
          .why = fmt::format("{} heads of {}", call.heads, call.width),
          .inputs = {SampleInput::normal({dtype, {kRows, call.heads, call.width}}),
                     SampleInput::normal({kept, pool}), SampleInput::normal({kept, pool}),
                     SampleInput::given({call.of_pages, {kRows, call.pages}}, numbers),
                     SampleInput::given({DType::i64, {kRows}}, {places, 0, places - 5})},
          .attributes = {{"groups", call.groups},
                         {"page_tokens", call.page_tokens},
                         {"scale", 0.125},
                         {"window", call.window}}};
      EXPECT_EQ(check(get_op("paged_attention"), sample, DType::f32), "")
          << sample.why << ", " << dtype_name(dtype) << " beside " << dtype_name(kept);
    }
}

// Whole tiles, and one row and column more.
TEST(ListedKernels, ProductsOf8BitsAgreeWithTheOracle) {
  for (const auto& [rows, columns] : {std::pair{128, 128}, {65, 129}, {16, 8}, {17, 64}})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Sample sample{.why = fmt::format("{} rows, {} columns", rows, columns),
                          .inputs = {SampleInput::normal({dtype, {rows, 96}}),
                                     SampleInput::integers({DType::i8, {columns, 96}}, -127, 128),
                                     SampleInput::uniform({DType::f32, {columns}}, 1e-3, 1e-2)},
                          .attributes = {}};
      EXPECT_EQ(check(get_op("quantized_linear"), sample, dtype), "")
          << sample.why << ", " << dtype_name(dtype);
    }
}

/// Attention by several blocks of several warps, each over several tiles.
struct AttentionCall {
  std::string why;
  int64_t heads, groups, queries, keys, width;
  bool causal;
  double dropout = 0;
  std::optional<Shape> mask = std::nullopt;  ///< of truth values
};
Sample sample_of(const AttentionCall& call, bool is_gradient) {
  const TensorType q{DType::f32, {1, call.heads, call.queries, call.width}};
  const TensorType k{DType::f32, {1, call.groups, call.keys, call.width}};
  const TensorType rows{DType::f32, q.shape.without(3)};
  Sample sample{.why = call.why,
                .inputs = {SampleInput::normal(q), SampleInput::normal(k), SampleInput::normal(k)},
                .attributes = {{"causal", call.causal},
                               {"masked", call.mask.has_value()},
                               {"scale", 0.125},
                               {"dropout", call.dropout},
                               {"site", int64_t{3}}}};
  if (is_gradient)
    for (SampleInput& input : std::vector{SampleInput::normal(q), SampleInput::uniform(rows, 3, 5),
                                          SampleInput::normal(rows)})
      sample.inputs.push_back(std::move(input));
  if (call.mask) sample.inputs.push_back(SampleInput::integers({DType::boolean, *call.mask}, 0, 2));
  if (call.dropout > 0)
    for (const double value : {77.0, 1000.0})
      sample.inputs.push_back(SampleInput::given({DType::i64, {}}, {value}).constant());
  return sample;
}

TEST(ListedKernels, AttentionOfSeveralBlocksAgreesWithTheOracle) {
  const std::vector<AttentionCall> calls = {
      {"causal, fewer queries than keys", 2, 1, 150, 213, 24, true},
      {"every query sees every key", 1, 1, 130, 140, 64, false},
      {"causal, more queries than keys", 1, 1, 170, 70, 16, true},
      {"dropped, causal", 1, 1, 140, 140, 40, true, 0.25},
      {"masked by query, dropped", 2, 1, 140, 75, 16, false, 0.5, Shape{1, 2, 140, 75}},
      {"masked as padding does", 1, 1, 35, 200, 64, false, 0, Shape{1, 1, 1, 200}},
      {"wide heads, causal", 1, 1, 70, 140, 72, true},
      {"wide heads, masked and dropped", 1, 1, 70, 40, 128, false, 0.25, Shape{1, 1, 70, 40}},
  };
  for (const AttentionCall& call : calls) {
    EXPECT_EQ(check(get_op("attention"), sample_of(call, false), DType::bf16), "") << call.why;
    EXPECT_EQ(check(get_op("attention_gradient"), sample_of(call, true), DType::bf16), "")
        << call.why;
  }
  EXPECT_EQ(check(get_op("attention"), sample_of(calls[0], false), DType::f16), "");
}

TEST(ListedKernels, OneWrongElementIsSeen) {
  for (const char* const op : {"matmul", "gather", "scatter_add", "sort", "convolution",
                               "recurrence_states", "recurrence_outputs", "recurrence_gradient"})
    EXPECT_NE(check(get_op(op), get_op(op).samples()[1], DType::f32, {},
                    [](std::vector<char>& bytes) { bytes[3] ^= 0x20; }),
              "")
        << op;
}

TEST(ListedKernels, AnOpWithoutOneSaysSo) {
  const MaterialisedSample call =
      materialise(get_op("exp"), get_op("exp").samples().front(), DType::f32, 1);
  std::string why_not;
  const cuda::CardFacts card;
  EXPECT_EQ(cuda::make_listed_kernel({call.graph, call.graph.nodes().front(), card}, &why_not),
            nullptr);
  EXPECT_EQ(why_not, "no kernel is written for exp");
}

}  // namespace
}  // namespace fullbore
