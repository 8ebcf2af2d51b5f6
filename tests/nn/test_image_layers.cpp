#include "fullbore/nn/image_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fullbore/nn/initializers.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TensorType f32(Shape shape) { return {DType::f32, std::move(shape)}; }

std::vector<std::string> declared(const Trace& trace) {
  std::vector<std::string> parameters;
  for (const Trace::Parameter& parameter : trace.parameters())
    parameters.push_back(parameter.name + " " + parameter.tensor.type().text());
  return parameters;
}

TEST(ImageLayers, DeclareWeightsAsPyTorch) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({2, 6, 9, 8}));
  EXPECT_EQ(nn::conv2d(trace, "a", x, 4, {.kernel = {3, 2}, .padding = 1, .groups = 2}).type(),
            f32({2, 4, 9, 9}));
  EXPECT_EQ(nn::transposed_conv(trace, "b", x, 4, {.kernel = 4, .stride = 2, .padding = 1}).type(),
            f32({2, 4, 18, 16}));
  EXPECT_EQ(
      nn::conv1d(trace, "c", trace.batch("s", f32({1, 2, 5})), 3, {.kernel = 5, .bias = false})
          .type(),
      f32({1, 3, 1}));
  EXPECT_EQ(nn::conv3d(trace, "d", trace.batch("v", f32({1, 2, 3, 3, 3})), 3, {.kernel = 1}).type(),
            f32({1, 3, 3, 3, 3}));
  EXPECT_THAT(declared(trace),
              ElementsAre("a.weight f32[4,3,3,2]", "a.bias f32[4]", "b.weight f32[6,4,4,4]",
                          "b.bias f32[4]", "c.weight f32[3,2,5]", "d.weight f32[3,2,1,1,1]",
                          "d.bias f32[3]"));
  // 1 / sqrt(fan_in), the fan of a transposed one counted along its second axis.
  EXPECT_NEAR(trace.initializers().at("a.weight").b, 1 / std::sqrt(18.0), 1e-12);
  EXPECT_NEAR(trace.initializers().at("a.bias").a, -1 / std::sqrt(18.0), 1e-12);
  EXPECT_NEAR(trace.initializers().at("b.weight").b, 1 / std::sqrt(64.0), 1e-12);
}

TEST(ImageLayers, InitialisationsHaveTheirDeviations) {
  EXPECT_NEAR(nn::kaiming_uniform(12).b, 1 / std::sqrt(12.0), 1e-12);
  EXPECT_NEAR(nn::kaiming_normal(8).b, 0.5, 1e-12);
  EXPECT_NEAR(nn::xavier_uniform(2, 4).b, 1, 1e-12);
  EXPECT_NEAR(nn::xavier_normal(3, 5, 2).b, 1, 1e-12);
}

TEST(ImageLayers, BatchNormKeepsRunningStatistics) {
  std::ifstream file(testing::source_folder() + "/tests/ops/golden/images.json");
  int checked = 0;
  for (const Json& c : Json::parse(file)) {
    if (c.at("layer") != "batch_norm") continue;
    ++checked;
    const auto literal = [](const Json& json) {
      return Literal::of(f32(Shape(json.at("shape").get<std::vector<int64_t>>())),
                         json.at("values").get<std::vector<double>>());
    };
    const Json &operands = c.at("operands"), &options = c.at("options");
    Trace trace("t", true);
    const Tensor x = trace.batch("x", literal(operands.at("x")).type());
    trace.result("y", nn::batch_norm(
                          trace, "n", x,
                          {.epsilon = options.at("epsilon"), .momentum = options.at("momentum")}));
    const auto made =
        interpret_by_name(trace.finish(), {{"x", literal(operands.at("x"))},
                                           {"n.weight", literal(operands.at("weight"))},
                                           {"n.bias", literal(operands.at("bias"))},
                                           {"n.running_mean", literal(options.at("mean"))},
                                           {"n.running_var", literal(options.at("variance"))}});
    const std::pair<const char*, Literal> expected[] = {
        {"y", literal(c.at("y"))},
        {"n.running_mean", literal(c.at("next")[0])},
        {"n.running_var", literal(c.at("next")[1])}};
    for (const auto& [name, values] : expected) {
      ASSERT_TRUE(made.contains(name)) << name;
      for (int64_t i = 0; i < values.elements(); ++i)
        EXPECT_NEAR(made.at(name).at(i), values.at(i), 1e-5) << c.at("name") << " " << name;
    }
  }
  EXPECT_EQ(checked, 3);
}

TEST(ImageLayers, BatchNormEvaluatesByItsState) {
  Trace trace("t", false);
  const Tensor x = trace.batch("x", f32({1, 2}));
  trace.result("y", nn::batch_norm(trace, "n", x, {.epsilon = 0}));
  const auto made =
      interpret_by_name(trace.finish(), {{"x", Literal::of(f32({1, 2}), {5, 3})},
                                         {"n.weight", Literal::of(f32({2}), {2, 1})},
                                         {"n.bias", Literal::of(f32({2}), {0, 10})},
                                         {"n.running_mean", Literal::of(f32({2}), {1, 1})},
                                         {"n.running_var", Literal::of(f32({2}), {4, 1})}});
  EXPECT_EQ(made.size(), 1U);  // the State stays as it is
  EXPECT_THAT(elements(made.at("y")), ElementsAre(4, 12));
}

TEST(ImageLayers, NameWhatDoesNotFit) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", f32({1, 6, 4}));
  EXPECT_THAT(usage_error([&] { nn::conv2d(trace, "a", x, 4, {.kernel = 3}); }),
              HasSubstr("conv2d: needs x [N,C,H,W], got f32[1,6,4] (nn/test_image_layers.cpp:"));
  EXPECT_THAT(usage_error([&] { nn::conv1d(trace, "a", x, 4, {.kernel = 3, .groups = 4}); }),
              HasSubstr("6 channels of x f32[1,6,4] and 4 outputs do not divide into 4 groups"));
  EXPECT_THAT(usage_error([&] {
                nn::batch_norm(trace, "b", trace.batch("one", f32({1, 6})));
              }),
              HasSubstr("have one element each"));
}

}  // namespace
}  // namespace fullbore
