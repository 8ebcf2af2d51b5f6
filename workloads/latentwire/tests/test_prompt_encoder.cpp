#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "tests/support/evaluate.h"
#include "tests/support/gradcheck.h"
#include "tests/support/interpret_by_name.h"
#include "workloads/latentwire/prefix_adapter.h"
#include "workloads/latentwire/prompt_encoder.h"
#include "workloads/latentwire/training_statistics.h"

namespace fullbore::latentwire {
namespace {

using Literals = std::map<std::string, Literal>;

int64_t parameters_of(Trace& trace) {
  int64_t count = 0;
  for (const Trace::Parameter& each : trace.parameters()) count += each.tensor.type().elements();
  return count;
}

// Check 1 of the specification.
TEST(PromptEncoder, HasTheParametersOfTheSpecification) {
  const EncoderSizes sizes;
  Trace body("body", false);
  const Tensor bytes = body.batch("bytes", {DType::i32, {1, 4}});
  const Tensor lengths = body.batch("lengths", {DType::i32, {1}});
  const Tensor features = encode_bytes(body, bytes, lengths, sizes);
  EXPECT_EQ(parameters_of(body), 4'804'608);
  pool_slots(body, features, lengths, sizes);
  EXPECT_EQ(parameters_of(body), 5'405'696);
  Trace layer("layer", false);
  encoder_layer(layer, "layer", layer.batch("x", {DType::f32, {1, 2, 256}}), {}, {});
  EXPECT_EQ(parameters_of(layer), 789'760);
}

TEST(PrefixAdapter, HasTheParametersOfTheSpecification) {
  for (const auto& [width, count] : {std::pair{4096, 5'670'913}, std::pair{3584, 5'012'481}}) {
    Trace trace("t", false);
    adapt_slots(trace, "adapter", trace.batch("z", {DType::f32, {1, 32, 256}}),
                {.width = width, .length_hint = true},
                {.length_share = trace.batch("share", {DType::f32, {1}})});
    EXPECT_EQ(parameters_of(trace), count);
  }
}

// Parameters as random numbers that f32 holds.
Literals parameters(const Graph& graph) {
  Literals result;
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::parameter) continue;
    PhiloxStream draws(11, result.size());
    Literal values(graph.type(input.value));
    for (int64_t i = 0; i < values.elements(); ++i) values.put(i, 0.4 * draws.normal());
    values.round();
    result[input.name] = values;
  }
  return result;
}

constexpr int64_t kWidth = 8, kSlots = 3, kModelWidth = 6;

EncoderSizes small(bool pre_norm) {
  return {.width = kWidth, .layers = 2, .heads = 2, .slots = kSlots, .pre_norm = pre_norm};
}

// The calibrated prefix of rows of bytes.
std::vector<double> prefix_of(bool pre_norm, int64_t places, const std::vector<double>& bytes,
                              const std::vector<double>& lengths) {
  const int64_t batch = std::ssize(lengths);
  Trace trace("encode", false);
  const Tensor wire =
      encode_prompts(trace, trace.batch("bytes", {DType::i32, {batch, places}}),
                     trace.batch("lengths", {DType::i32, {batch}}), small(pre_norm));
  const AdapterOutput output =
      adapt_slots(trace, "adapter", wire, {.width = kModelWidth, .refiner = 1});
  trace.result("y", calibrate(output.prefix, full(trace.builder(), {DType::f32, {}}, 0.02)));
  const Graph graph = trace.finish();
  Literals inputs = parameters(graph);
  inputs["bytes"] = integers(DType::i32, {batch, places}, bytes);
  inputs["lengths"] = integers(DType::i32, {batch}, lengths);
  return elements(interpret_by_name(graph, inputs).at("y"));
}

// Check 6 of the specification: what stands behind a row, and longer rows beside it, change nothing.
TEST(PromptEncoder, DoesNotDependOnWhatElseIsInTheBatch) {
  for (const bool pre_norm : {false, true}) {
    const std::vector<double> alone = prefix_of(pre_norm, 3, {40, 70, 50}, {3});
    const std::vector<double> beside =
        prefix_of(pre_norm, 5, {1, 2, 3, 4, 5, 40, 70, 50, 9, 200}, {5, 3});
    const size_t row = alone.size();
    double square = 0;
    for (size_t i = 0; i < row; ++i) {
      EXPECT_NEAR(beside[row + i], alone[i], 1e-10);
      square += alone[i] * alone[i];
    }
    EXPECT_NEAR(std::sqrt(square / static_cast<double>(row)), 0.02, 1e-8);
    const std::vector<double> turned = prefix_of(pre_norm, 3, {70, 40, 50}, {3});
    double difference = 0;
    for (size_t i = 0; i < row; ++i) difference += std::abs(turned[i] - alone[i]);
    EXPECT_GT(difference, 1e-6);
  }
}

// Check 14 of the specification: PE(3, 0..2) of 256 channels.
TEST(PromptEncoder, HasItsSinusoids) {
  Trace trace("t", false);
  const EncoderSizes sizes{.width = 256, .layers = 0, .heads = 1};
  const Tensor bytes = trace.batch("bytes", {DType::i32, {1, 4}});
  trace.result("y", encode_bytes(trace, bytes, trace.batch("lengths", {DType::i32, {1}}), sizes));
  const Graph graph = trace.finish();
  Literals inputs;  // the table is zero and the norm's gain one
  for (const Graph::Input& input : graph.inputs())
    if (input.name == "encoder.norm.weight") {
      Literal ones(graph.type(input.value));
      for (int64_t i = 0; i < 256; ++i) ones.put(i, 1);
      inputs[input.name] = ones;
    }
  const std::vector<double> y = elements(interpret_by_name(graph, inputs).at("y"));
  std::vector<double> expected;
  double mean = 0, square = 0;
  for (int i = 0; i < 128; ++i) {
    const double angle = 3 / std::pow(10000.0, 2.0 * i / 256);
    for (const double value : {std::sin(angle), std::cos(angle)}) expected.push_back(value);
  }
  EXPECT_NEAR(expected[0], .141120, 1e-6);
  EXPECT_NEAR(expected[1], -.989992, 1e-6);
  EXPECT_NEAR(expected[2], .342782, 1e-6);
  for (const double value : expected) mean += value / 256;
  for (const double value : expected) square += (value - mean) * (value - mean) / 256;
  for (size_t i = 0; i < 256; ++i)
    EXPECT_NEAR(y[size_t{3} * 256 + i], (expected[i] - mean) / std::sqrt(square + 1e-5), 1e-5);
}

TEST(PromptEncoder, GivesEachModelSharedAndPrivateSlots) {
  const SlotSplit split{.shared = 1, .own = 2, .models = 2};
  EXPECT_EQ(split.wire_slots(), 5);
  EXPECT_EQ(split.model_slots(), 3);
  const Literal wire = reals({1, 5, 1}, {0, 1, 2, 3, 4});
  const auto of_model = [&](int64_t model) {
    return elements(evaluate({wire}, [&](GraphBuilder&, const std::vector<Tensor>& given) {
      return slots_of_model(given[0], split, model);
    }));
  };
  EXPECT_EQ(of_model(0), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(of_model(1), (std::vector<double>{0, 3, 4}));
}

TEST(PromptEncoder, DropsWholeSharedSlotsAndNeverAllOfARow) {
  const SlotSplit split{.shared = 4, .own = 1, .models = 1};
  const auto dropped = [&](double keep) {
    Trace trace("t", true);
    const Tensor wire = full(trace.builder(), {DType::f32, {500, 5, 2}}, 1);
    trace.result("y",
                 drop_slots(trace, wire, split, full(trace.builder(), {DType::f32, {}}, keep)));
    return elements(interpret_by_name(trace.finish(), {}).at("y"));
  };
  const std::vector<double> y = dropped(0.25);
  double kept = 0;
  for (size_t row = 0; row < 500; ++row) {
    double in_row = 0;
    for (size_t slot = 0; slot < 5; ++slot) {
      const double* at = y.data() + (row * 5 + slot) * 2;
      EXPECT_EQ(at[0], at[1]);
      EXPECT_TRUE(at[0] == 0 || at[0] == (slot == 4 ? 1 : 4));
      if (slot < 4) in_row += at[0] / 4;
    }
    EXPECT_GE(in_row, 1);
    EXPECT_EQ(y[(row * 5 + 4) * 2], 1);
    kept += in_row;
  }
  // One of four at least: 4 * 0.25 + 0.75^4 of a row on the average; four deviations.
  EXPECT_NEAR(kept / 500, 1 + std::pow(.75, 4), 0.13);
  EXPECT_EQ(dropped(1), std::vector<double>(5000, 1.0));
}

// Check 5 of the specification.
TEST(Calibration, SetsTheRootMeanSquareOfEachRow) {
  const auto calibrated = [](std::vector<double> y, const Shape& shape) {
    return elements(evaluate({reals(shape, std::move(y))},
                             [](GraphBuilder& b, const std::vector<Tensor>& given) {
                               return calibrate(given[0], full(b, {DType::f64, {}}, 0.02));
                             }));
  };
  // The root mean square of (3, -4, 0, 0) is 2.5.
  const std::vector<double> one = calibrated({3, -4, 0, 0}, {1, 2, 2});
  const std::vector<double> seven = calibrated({21, -28, 0, 0}, {1, 2, 2});
  const double expected[] = {.024, -.032, 0, 0};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(one[i], expected[i], 1e-12);
    EXPECT_NEAR(seven[i], expected[i], 1e-12);
  }
  EXPECT_EQ(calibrated({0, 0, 0, 0}, {1, 2, 2}), std::vector<double>(4, 0.0));
}

// Three steps' worth of statistics, and what they make of vectors that differ: rows keep their ratio.
TEST(Calibration, AsTrainingHasSeenIt) {
  const auto calibrated = [](double steps) {
    return elements(evaluate({reals({2, 1, 2}, {3, -4, 6, 8}), reals({4}, {5, 0.02, 0.03, steps})},
                             [](GraphBuilder&, const std::vector<Tensor>& given) {
                               const auto seen = [&](int64_t i) {
                                 return reshape(slice(given[1], 0, i, i + 1), {});
                               };
                               return calibrate_as_trained({seen(0), seen(1), seen(2), seen(3)},
                                                           given[0], given[0] * 2.0);
                             }));
  };
  const double expected[] = {.012, -.016, .024, .032};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(calibrated(3)[i], expected[i], 1e-12);
  EXPECT_EQ(calibrated(0), (std::vector<double>{6, -8, 12, 16}));
}

TEST(Calibration, ItsGradientIsOrthogonalToEachRow) {
  Trace trace("t", false);
  const Tensor y = trace.batch("y", {DType::f64, {2, 2, 3}});
  trace.result("p", calibrate(y, full(trace.builder(), {DType::f64, {}}, 0.5)));
  const Graph graph = trace.finish();
  const Literal value = random_literal(graph.type(graph.inputs()[0].value), 1, 1);
  const Literal cotangent = random_literal(value.type(), 1, 2);
  const std::vector<double> gradient =
      elements(interpret(gradient_graph(graph, {true}), std::vector<Literal>{value, cotangent})[0]);
  const std::vector<double> at = elements(value), g = elements(cotangent);
  for (size_t row = 0; row < 2; ++row) {
    double product = 0, square = 0, along = 0;
    for (size_t i = 6 * row; i < 6 * row + 6; ++i) {
      product += gradient[i] * at[i];
      square += at[i] * at[i] / 6;
    }
    EXPECT_NEAR(product, 0, 1e-12);
    const double rms = std::sqrt(square);
    for (size_t i = 6 * row; i < 6 * row + 6; ++i) along += g[i] * at[i] / rms / 6;
    for (size_t i = 6 * row; i < 6 * row + 6; ++i)
      EXPECT_NEAR(gradient[i], 0.5 / rms * (g[i] - at[i] / rms * along), 1e-12);
  }
}

// All modules of section 2 at once, in double precision.
TEST(PrefixAdapter, HasTheGradientsOfFiniteDifferences) {
  for (const bool pre_norm : {false, true}) {
    Trace trace("t", false);
    EncoderSizes sizes = small(pre_norm);
    sizes.layers = 1;
    const Tensor bytes =
        constant(trace.builder(), {DType::i32, {2, 3}}, std::vector<double>{1, 7, 3, 250, 7, 0});
    const Tensor lengths = constant(trace.builder(), {DType::i32, {2}}, std::vector<double>{3, 2});
    const Tensor wire = encode_prompts(trace, bytes, lengths, sizes);
    const auto constants = [&](const Shape& shape, double value) {
      return full(trace.builder(), {DType::f32, shape}, value);
    };
    const AdapterOutput output = adapt_slots(trace, "adapter", wire,
                                             {.width = kModelWidth,
                                              .refiner = pre_norm ? 1 : 0,
                                              .length_hint = true,
                                              .colour = pre_norm},
                                             {.length_share = constants({2}, 0.5),
                                              .mean = constants({kModelWidth}, 0.1),
                                              .deviation = constants({kModelWidth}, 0.7)});
    trace.result("y", calibrate(output.prefix, constants({}, 1)));
    GradcheckCase check{trace.finish(), {}, {}};
    for (const Graph::Input& each : check.graph.inputs()) {
      check.inputs.push_back(random_literal(check.graph.type(each.value), 7, check.inputs.size()));
      check.wanted.push_back(true);
    }
    EXPECT_EQ(gradcheck(check).problem, "") << pre_norm;
    EXPECT_NE(gradcheck(check, {.gradient_scale = 1.01}).problem, "");
  }
}

}  // namespace
}  // namespace fullbore::latentwire
