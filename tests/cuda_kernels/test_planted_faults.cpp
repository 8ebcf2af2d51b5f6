// Hand-written kernels with one barrier or one wait for copies removed, in turn: the machine that executes PTX meets each.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/device/cuda/kernel_list.h"
#include "fullbore/ir/op_def.h"
#include "tests/cuda_kernels/machine_run.h"
#include "tests/support/card_run.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using namespace testing_support;  // NOLINT: a test

class PlantedFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (runs_on_card()) GTEST_SKIP() << "a card does not tell what is planted";
  }
};

/// Where the n-th `what` stands in the text; npos if there are fewer.
size_t place_of(const std::string& text, const std::string& what, int n) {
  size_t at = text.find(what);
  for (; n > 0 && at != std::string::npos; --n) at = text.find(what, at + 1);
  return at;
}

/// The text with `by` for its n-th `what`; or without the line of it, where `by` is empty. None if there are fewer.
std::optional<std::string> changed(const std::string& text, const std::string& what,
                                   const std::string& by, int n) {
  const size_t at = place_of(text, what, n);
  if (at == std::string::npos) return std::nullopt;
  if (!by.empty()) return text.substr(0, at) + by + text.substr(at + what.size());
  const size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
  return text.substr(0, begin) + text.substr(end + 1);
}

struct Counts {
  int removed = 0, missed = 0;
};

/// Of all launches of an op's kernel: how many lines were removed, or changed `by` something, and how many of those were
/// missed.
Counts remove_each(const char* op, const Sample& sample, DType dtype, const std::string& what,
                   const std::string& by = "") {
  const MaterialisedSample call = materialise(get_op(op), sample, dtype, 1);
  const Node& node = call.graph.nodes().front();
  const cuda::CardFacts card;
  const auto kernel = cuda::make_listed_kernel({call.graph, node, card}, nullptr);
  std::vector<const Literal*> operands;
  for (const Literal& input : call.inputs) operands.push_back(&input);
  std::vector<TensorType> outputs;
  for (const Value output : node.outputs) outputs.push_back(call.graph.type(output));
  const MachineResult intact = run_on_machine(*kernel, operands, outputs, {});
  EXPECT_EQ(intact.problem, "");
  Counts counts;
  for (size_t i = 0; i < kernel->launches().size(); ++i)
    for (int n = 0;; ++n) {
      std::vector<cuda::Launch> launches = kernel->launches();
      const auto text = changed(launches[i].module->ptx, what, by, n);
      if (!text) break;
      launches[i].module =
          std::make_shared<const cuda::Module>(cuda::Module{launches[i].entry, *text});
      const cuda::CudaKernel without(
          launches, {.text = "changed", .scratch_bytes = kernel->scratch_bytes(1)});
      const MachineResult run = run_on_machine(without, operands, outputs, {});
      ++counts.removed;
      if (!run.problem.empty() || run.outputs != intact.outputs) ++counts.missed;
    }
  return counts;
}

Sample attention_of(int64_t queries, int64_t keys, int64_t width, bool is_gradient) {
  const TensorType q{DType::f32, {1, 1, queries, width}}, k{DType::f32, {1, 1, keys, width}};
  const TensorType rows{DType::f32, {1, 1, queries}};
  Sample sample{.why = "several tiles",
                .inputs = {SampleInput::normal(q), SampleInput::normal(k), SampleInput::normal(k)},
                .attributes = {{"causal", false},
                               {"masked", false},
                               {"scale", 0.25},
                               {"dropout", 0.0},
                               {"site", int64_t{0}}}};
  if (is_gradient)
    sample.inputs.insert(
        sample.inputs.end(),
        {SampleInput::normal(q), SampleInput::uniform(rows, 4, 5), SampleInput::normal(rows)});
  return sample;
}
Sample with_bias(Sample sample) {
  const int64_t queries = sample.inputs[0].type.shape[2], keys = sample.inputs[1].type.shape[2];
  sample.inputs.push_back(SampleInput::normal({DType::f32, {1, 1, queries, keys}}));
  sample.attributes.set("masked", true);
  return sample;
}

Sample matmul_of(int64_t m, int64_t n, int64_t k) {
  return {.why = "several steps",
          .inputs = {SampleInput::normal({DType::f32, {m, k}}),
                     SampleInput::normal({DType::f32, {k, n}})},
          .attributes = {{"transpose_a", false}, {"transpose_b", false}, {"wide", false}}};
}

Sample as_tf32(Sample sample) {
  sample.attributes.set("tf32", true);
  return sample;
}

/// How many barriers and waits are needless on these operands.
struct Needless {
  int barriers = 0, waits = 0;
};

void expect_all_missed(const char* op, const Sample& sample, DType dtype, Needless needless = {}) {
  const Counts barriers = remove_each(op, sample, dtype, "bar.sync");
  EXPECT_EQ(barriers.missed + needless.barriers, barriers.removed)
      << op << ", " << dtype_name(dtype) << ", barriers";
  const Counts waits = remove_each(op, sample, dtype, "cp.async.wait_group");
  EXPECT_EQ(waits.missed + needless.waits, waits.removed)
      << op << ", " << dtype_name(dtype) << ", waits";
}

TEST_F(PlantedFaults, OfMatmulsAreMet) {
  expect_all_missed("matmul", matmul_of(32, 40, 40), DType::f32);
  // Nine steps through four stages: the last one is in the first, where sums go. A barrier is for the batch behind another, and
  // the last wait for copies of which none are left.
  expect_all_missed("matmul", matmul_of(64, 64, 288), DType::bf16, {.barriers = 1, .waits = 1});
  expect_all_missed("matmul", as_tf32(matmul_of(64, 64, 144)), DType::f32,
                    {.barriers = 1, .waits = 1});
}

// Each operand that is multiplied as it lies, not rounded.
TEST_F(PlantedFaults, OfRoundingToTf32AreMet) {
  const Counts counts = remove_each("matmul", as_tf32(matmul_of(64, 64, 16)), DType::f32,
                                    "cvt.rna.tf32.f32", "mov.b32");
  EXPECT_GT(counts.removed, 0);
  EXPECT_EQ(counts.missed, counts.removed);
}

// The last wait of each kernel by tensor cores is for copies of which none are left if there was a tile.
TEST_F(PlantedFaults, OfAttentionAreMet) {
  expect_all_missed("attention", attention_of(33, 100, 40, false), DType::f32);
  expect_all_missed("attention", attention_of(140, 200, 16, false), DType::bf16, {.waits = 1});
  expect_all_missed("attention", attention_of(30, 70, 16, false), DType::bf16, {.waits = 1});
  expect_all_missed("attention_gradient", attention_of(40, 70, 40, true), DType::f32);
  expect_all_missed("attention_gradient", attention_of(130, 130, 16, true), DType::bf16,
                    {.waits = 2});
  expect_all_missed("attention", with_bias(attention_of(64, 200, 16, false)), DType::bf16,
                    {.waits = 1});
  expect_all_missed("attention_gradient", with_bias(attention_of(130, 130, 16, true)), DType::bf16,
                    {.waits = 2});
}

/// Several stages of tokens in a chunk; `is_gradient`: with dy, and cotangents behind the states. If inclusive, all keys
/// have one decay.
Sample recurrence_of(int64_t tokens, bool inclusive, bool is_gradient) {
  const auto normal = [](Shape shape) {
    return SampleInput::normal({DType::f32, std::move(shape)});
  };
  const SampleInput of_token = normal({1, tokens, 1, 8}), of_state = normal({1, 1, 1, 8, 8});
  Sample sample{
      .why = "several stages",
      .inputs = {of_token, of_token, of_token},
      .attributes = {{"chunk", int64_t{200}}, {"inclusive", inclusive}, {"resets", false}}};
  if (is_gradient) sample.inputs.push_back(of_token);
  sample.inputs.push_back(
      SampleInput::uniform({DType::f32, {1, tokens, 1, inclusive ? 1 : 8}}, -1, -0.01));
  if (!inclusive) sample.inputs.push_back(normal({1, 8}));
  sample.inputs.push_back(of_state);
  if (is_gradient) sample.inputs.push_back(of_state);
  return sample;
}

TEST_F(PlantedFaults, OfPagedAttentionAreMet) {
  const Sample sample{.why = "parts for each warp",
                      .inputs = {SampleInput::normal({DType::f32, {2, 2, 40}}),
                                 SampleInput::normal({DType::f32, {64, 80}}),
                                 SampleInput::normal({DType::f32, {64, 80}}),
                                 SampleInput::integers({DType::i32, {2, 2}}, 0, 4),
                                 SampleInput::given({DType::i64, {2}}, {32, 29})},
                      .attributes = {{"groups", int64_t{2}},
                                     {"page_tokens", int64_t{16}},
                                     {"scale", 0.25},
                                     {"window", int64_t{0}}}};
  for (const DType dtype : {DType::f32, DType::bf16})
    expect_all_missed("paged_attention", sample, dtype);
}

TEST_F(PlantedFaults, OfQuantizedLinearAreMet) {
  const Sample sample{.why = "a part for each warp",
                      .inputs = {SampleInput::normal({DType::f32, {3, 200}}),
                                 SampleInput::integers({DType::i8, {9, 200}}, -127, 128),
                                 SampleInput::uniform({DType::f32, {9}}, 1e-3, 1e-2)},
                      .attributes = {}};
  expect_all_missed("quantized_linear", sample, DType::f32);
}

TEST_F(PlantedFaults, OfRecurrencesAreMet) {
  const TensorType k{DType::f32, {1, 80, 1, 8}};
  const Sample states{
      .why = "several stages",
      .inputs = {SampleInput::normal(k), SampleInput::normal(k), SampleInput::uniform(k, -1, -0.01),
                 SampleInput::normal({DType::f32, {1, 1, 8, 8}})},
      .attributes = {
          {"chunk", int64_t{64}}, {"inclusive", false}, {"resets", false}, {"reverse", false}}};
  expect_all_missed("recurrence_states", states, DType::f32);
  for (const bool inclusive : {false, true})
    expect_all_missed("recurrence_outputs", recurrence_of(40, inclusive, false), DType::f32);
  // Where each key has its decay nothing is summed over keys: two barriers are for that.
  expect_all_missed("recurrence_gradient", recurrence_of(40, false, true), DType::f32,
                    {.barriers = 2});
  expect_all_missed("recurrence_gradient", recurrence_of(150, true, true), DType::f32);
}

TEST_F(PlantedFaults, OfScattersAndSortsAreMet) {
  const Sample scatter{.why = "several tiles of indices",
                       .inputs = {SampleInput::normal({DType::f32, {700, 3}}),
                                  SampleInput::integers({DType::i32, {700}}, 0, 9)},
                       .attributes = {{"rows", int64_t{9}}}};
  expect_all_missed("scatter_add", scatter, DType::f32);
  const Sample sort{.why = "more than a warp",
                    .inputs = {SampleInput::normal({DType::f32, {300}})},
                    .attributes = {{"descending", false}}};
  expect_all_missed("sort", sort, DType::f32);
}

}  // namespace
}  // namespace fullbore
