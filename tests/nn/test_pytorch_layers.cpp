// Recurrent and attention layers against PyTorch: results and gradients by the same weights (tools/golden/layers.py), and
// how they begin.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/nn/attention_layers.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/recurrent_layers.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

using Json = nlohmann::json;

Shape shape_of(const Json& json) { return Shape(json.at("shape").get<std::vector<int64_t>>()); }

std::vector<double> values_of(const Json& json) {
  return json.at("values").get<std::vector<double>>();
}

std::map<std::string, Tensor> results_of(const Json& c, Trace& trace,
                                         const std::map<std::string, Tensor>& in) {
  const std::string layer = c.at("layer");
  const Json& o = c.at("options");
  if (layer == "attention" || layer == "cross_attention") {
    const nn::AttentionLayerOptions options{
        .heads = o.at("heads"), .causal = o.at("causal"), .bias = o.at("bias")};
    const Tensor x = in.at("x");
    return {{"y", layer == "attention"
                      ? nn::attention(trace, "layer", x, options)
                      : nn::cross_attention(trace, "layer", x, in.at("memory"), options)}};
  }
  nn::RecurrentOptions options{.layers = o.value("layers", int64_t{1}),
                               .bidirectional = o.value("bidirectional", false),
                               .batch_first = o.value("batch_first", false)};
  if (in.contains("hidden")) options.hidden = in.at("hidden");
  if (in.contains("cell")) options.cell = in.at("cell");
  const auto kind = layer == "gru" ? nn::gru : nn::lstm;
  const nn::RecurrentResult made =
      kind(trace, "layer", in.at("x"), o.at("units"), options, SourceLoc::here());
  std::map<std::string, Tensor> results = {{"outputs", made.outputs}, {"hidden", made.hidden}};
  if (layer == "lstm") results["cell"] = made.cell;
  return results;
}

void expect_near(const Literal& found, const Json& wanted, const std::string& what) {
  ASSERT_EQ(found.shape(), shape_of(wanted)) << what;
  const std::vector<double> values = values_of(wanted);
  // Parameters and their gradients are f32; all between is f64.
  for (int64_t i = 0; i < found.elements(); ++i) {
    const double value = values[static_cast<size_t>(i)];
    ASSERT_NEAR(found.at(i), value, 1e-6 * (1 + std::abs(value))) << what << " " << i;
  }
}

TEST(PyTorchLayers, EqualPyTorchsResultsAndGradients) {
  std::ifstream file(testing::source_folder() + "/tests/nn/golden/layers.json");
  const Json cases = Json::parse(file);
  ASSERT_EQ(cases.size(), 7U);
  for (const Json& c : cases) {
    const std::string name = c.at("name");
    Trace trace("t", true);
    std::map<std::string, Literal> given;
    std::map<std::string, Tensor> in;
    std::vector<std::string> names;
    std::vector<Tensor> sources;
    for (const auto& [key, value] : c.at("inputs").items()) {
      const TensorType type{DType::f64, shape_of(value)};
      given.emplace(key, Literal::of(type, values_of(value)));
      in[key] = trace.batch(key, type);
      names.push_back(key);
      sources.push_back(in[key]);
    }
    const std::map<std::string, Tensor> results = results_of(c, trace, in);
    ASSERT_EQ(results.size(), c.at("results").size()) << name;
    Tensor sum;
    for (const auto& [key, value] : results) {
      const Json& cotangent = c.at("cotangents").at(key);
      std::vector<int64_t> axes;
      for (int axis = 0; axis < value.rank(); ++axis) axes.push_back(axis);
      const Tensor part =
          reduce_sum(value * constant(trace.builder(), {DType::f64, shape_of(cotangent)},
                                      values_of(cotangent)),
                     axes);
      sum = sum.valid() ? sum + part : part;
      trace.result("result " + key, value);
    }
    ASSERT_EQ(trace.parameters().size(), c.at("parameters").size()) << name;
    for (const Trace::Parameter& parameter : trace.parameters()) {
      const std::string key = parameter.name.substr(std::string("layer.").size());
      ASSERT_TRUE(c.at("parameters").contains(key)) << name << ": " << key;
      const Json& value = c.at("parameters").at(key);
      ASSERT_EQ(parameter.tensor.shape(), shape_of(value)) << name << ": " << key;
      given.emplace(parameter.name, Literal::of(parameter.tensor.type(), values_of(value)));
      names.push_back(key);
      sources.push_back(parameter.tensor);
    }
    const std::vector<Tensor> gradients = gradient(sum, sources);
    for (size_t i = 0; i < names.size(); ++i) trace.result("gradient " + names[i], gradients[i]);
    const auto found = interpret_by_name(trace.finish(), given);
    for (const auto& [key, value] : c.at("results").items())
      expect_near(found.at("result " + key), value, name + ": " + key);
    for (const std::string& key : names)
      expect_near(found.at("gradient " + key), c.at("gradients").at(key), name + ": d" + key);
  }
}

TEST(PyTorchLayers, BeginAsPyTorchs) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", {DType::f32, {3, 2, 16}});
  nn::gru(trace, "gru", x, 4);
  nn::lstm(trace, "lstm", x, 9);
  nn::attention(trace, "attend", x, {.heads = 4});
  nn::linear(trace, "linear", x, 3, nn::linear_of_pytorch(x.dim(-1)));
  const auto uniform = [&](const char* name, double bound) {
    const Initializer& first = trace.initializers().at(name);
    EXPECT_EQ(first.kind, Initializer::Kind::uniform) << name;
    EXPECT_NEAR(first.a, -bound, 1e-12) << name;
    EXPECT_NEAR(first.b, bound, 1e-12) << name;
  };
  for (const char* const name :
       {"gru.weight_ih_l0", "gru.weight_hh_l0", "gru.bias_ih_l0", "gru.bias_hh_l0"})
    uniform(name, 0.5);
  for (const char* const name :
       {"lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0", "lstm.bias_hh_l0"})
    uniform(name, 1.0 / 3);
  uniform("attend.in_proj_weight", std::sqrt(6.0 / 64));
  uniform("attend.out_proj.weight", 0.25);
  for (const char* const name : {"attend.in_proj_bias", "attend.out_proj.bias"})
    EXPECT_EQ(trace.initializers().at(name).kind, Initializer::Kind::zeros) << name;
  uniform("linear.weight", 0.25);
  uniform("linear.bias", 0.25);
}

// Dropout is of training alone, and narrow activations keep f32 masters.
TEST(PyTorchLayers, KnowTrainingAndNarrowTypes) {
  for (const bool training : {false, true}) {
    Trace trace("t", training);
    const Tensor x = trace.batch("x", {DType::bf16, {2, 3, 4}});
    EXPECT_EQ(nn::attention(trace, "attend", x, {.heads = 2, .dropout = 0.5}).type(), x.type());
    EXPECT_EQ(nn::gru(trace, "gru", x, 5).outputs.type(), TensorType(DType::bf16, {2, 3, 5}));
    EXPECT_EQ(nn::lstm(trace, "lstm", x, 5).cell.type(), TensorType(DType::bf16, {1, 3, 5}));
    for (const Trace::Parameter& parameter : trace.parameters())
      EXPECT_EQ(parameter.tensor.dtype(), DType::f32) << parameter.name;
    trace.result("y", x);
    bool draws = false;
    const Graph graph = trace.finish();
    for (const Graph::Input& input : graph.inputs()) draws |= input.name == "random.seed";
    EXPECT_EQ(draws, training);
  }
}

TEST(PyTorchLayers, NameWhatDoesNotFit) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", {DType::f32, {3, 2, 6}});
  const Tensor flat = trace.batch("flat", {DType::f32, {3, 6}});
  const SourceLoc loc{"models/mine.cpp", 12};
  const auto fails = [](const std::function<void()>& action, const std::string& words) {
    EXPECT_EQ(usage_error(action), words + " (models/mine.cpp:12)");
  };
  fails([&] { nn::gru(trace, "a", flat, 4, {}, loc); },
        "gru: needs x [T,B,I], floating, got f32[3,6]");
  fails([&] { nn::lstm(trace, "a", flat, 4, {.batch_first = true}, loc); },
        "lstm: needs x [B,T,I], floating, got f32[3,6]");
  fails([&] { nn::gru(trace, "a", Tensor(), 4, {}, loc); },
        "gru: needs x [T,B,I], floating, got an empty Tensor");
  fails([&] { nn::gru(trace, "a", x, 0, {}, loc); }, "gru: 1 layers of 0 units");
  fails([&] { nn::gru(trace, "a", x, 4, {.hidden = x}, loc); },
        "gru: the first hidden state is f32[3,2,6], and f32[1,2,4] was expected");
  fails([&] { nn::gru(trace, "a", x, 4, {.cell = x}, loc); }, "gru: it has no cell state");
  fails([&] { nn::lstm(trace, "a", x, 6, {.layers = 3, .bidirectional = true, .cell = x}, loc); },
        "lstm: the first cell state is f32[3,2,6], and f32[6,2,6] was expected");
  fails([&] { nn::attention(trace, "a", flat, {}, loc); },
        "attention: needs x [B,T,C], got f32[3,6]");
  fails([&] { nn::attention(trace, "a", x, {.heads = 4}, loc); },
        "attention: width 6 of x is not a multiple of 4 heads");
  fails([&] { nn::cross_attention(trace, "a", x, flat, {}, loc); },
        "cross_attention: needs memory [B,T,C], got f32[3,6]");
  const Tensor other = trace.batch("other", {DType::f32, {2, 5, 6}});
  fails([&] { nn::cross_attention(trace, "a", x, other, {}, loc); },
        "cross_attention: x f32[3,2,6] does not go with memory f32[2,5,6]");
  EXPECT_TRUE(trace.parameters().empty());
}

}  // namespace
}  // namespace fullbore
