#include "fullbore/runtime/quantized_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/gemm/quantize_linears.h"
#include "fullbore/runtime/program.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 3, kWidth = 40, kTokens = 9;

/// A table that is looked up in and is the head too, and a matrix between.
Graph model() {
  GraphBuilder builder("model");
  const Tensor tokens = builder.input("tokens", Role::batch, {DType::i32, {kRows}});
  const Tensor table = builder.input("table", Role::parameter, {DType::f32, {kTokens, kWidth}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {kWidth, kWidth}});
  const Tensor bias = builder.input("b", Role::parameter, {DType::f32, {kWidth}});
  builder.output("logits", linear(linear(gather(table, tokens), w, bias), table));
  return builder.take();
}

State random_state(const Graph& graph, const char* device = "cpu") {
  State state(state_entries(graph), open_device(device, 2));
  PhiloxStream draws(5);
  for (const StateEntry& entry : state.entries())
    for (float& x : Edited<float>(state, entry.name)) x = static_cast<float>(draws.normal());
  return state;
}

State in_8_bits(const State& state, const Graph& graph) {
  return quantized_state(state, state_entries(quantize_linears(graph, {"table", "w"}).graph));
}

std::vector<float> logits(State& state) {
  Program program = Program::compile(model(), state);
  alignas(64) const int32_t tokens[kRows] = {4, 0, 8};
  const void* const batch[] = {tokens};
  program.run(batch);
  return program.read_result<float>(program.output("logits"));
}

TEST(QuantizedState, AProgramReadsWhatStateHoldsIn8Bits) {
  const Graph graph = model();
  State whole = random_state(graph);
  State small = in_8_bits(whole, graph);
  EXPECT_THAT(quantized_parameters(whole), ElementsAre());
  EXPECT_THAT(quantized_parameters(small), ElementsAre("table", "w"));
  EXPECT_EQ(small.find("w"), -1) << "nobody reads it";
  EXPECT_GE(small.find("table"), 0) << "rows are looked up in it";
  const std::vector<float> expected = logits(whole), got = logits(small);
  double difference = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i] - expected[i]), 2);
    size += std::pow(static_cast<double>(expected[i]), 2);
  }
  EXPECT_GT(difference, 0) << "it was read in 32 bits";
  // Rounding errors are uniform in half a step of 1/127 of the largest of a row, here of about 2.5: a relative
  // error of 0.006 for each of four roundings.
  EXPECT_LT(std::sqrt(difference / size), 0.02);
}

TEST(QuantizedState, DevicesWithoutTheKernelMakeItOfPrimitives) {
  const Graph graph = model();
  State small = in_8_bits(random_state(graph, "null"), graph);
  EXPECT_EQ(logits(small).size(), static_cast<size_t>(kRows * kTokens));
}

TEST(QuantizedState, AMissingScaleIsNamed) {
  const Graph graph = model();
  std::vector<StateEntry> entries = state_entries(quantize_linears(graph, {"table", "w"}).graph);
  std::erase_if(entries, [](const StateEntry& entry) { return entry.name == "w.int8_scale"; });
  State small(entries, open_device("cpu", 2));
  try {
    logits(small);
    FAIL() << "ran";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs State 'w' f32[40,40], which does not exist"));
  }
}

TEST(QuantizedState, ParametersThatAreNotFiniteAreNamed) {
  const Graph graph = model();
  State whole = random_state(graph);
  Edited<float>(whole, "w")[7] = std::numeric_limits<float>::quiet_NaN();
  try {
    in_8_bits(whole, graph);
    FAIL() << "quantised";
  } catch (const NumericalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'w' f32[40,40] has a value that is not finite"));
  }
}

}  // namespace
}  // namespace fullbore
