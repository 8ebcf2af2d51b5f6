// Five steps of every optimiser, with groups, clipping and averages, against PyTorch or the papers'
// formulas in numpy (tools/golden/optimizers.py).
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "fullbore/optim/optimizer.h"
#include "fullbore/optim/update_rules.h"
#include "tests/optim/replayed.h"
#include "tests/support/evaluate.h"

namespace fullbore {
namespace {

using nlohmann::json;

const json& golden() {
  static const json contents = read_golden("optimizers.json");
  return contents;
}

std::map<std::string, Shape> shapes() { return shapes_of(golden()["shapes"]); }

Literal literal(const std::string& name, const json& values) {
  return Literal::of({DType::f32, shapes().at(name)}, values);
}

OptimizerOptions options_of(const json& test_case) {
  OptimizerOptions options;
  options.name = test_case["name"];
  options.schedule = {"constant", golden()["rate"], 0, 0, 1};
  options.beta1 = test_case.value("beta1", 0.0);
  options.beta2 = test_case.value("beta2", 0.0);
  options.epsilon = test_case.value("epsilon", 0.0);
  options.momentum = test_case.value("momentum", 0.0);
  options.nesterov = test_case.value("nesterov", false);
  options.weight_decay = test_case.value("weight_decay", 0.0);
  options.clip_norm = test_case.value("clip_norm", 0.0);
  options.clip_value = test_case.value("clip_value", 0.0);
  options.ema_decay = test_case.value("ema_decay", 0.0);
  const json groups = test_case.value("groups", json::object());
  for (const auto& [name, group] : groups.items()) {
    ParameterGroup& added = options.groups.emplace_back();
    added.match = name;
    if (group.contains("weight_decay")) added.weight_decay = group["weight_decay"].get<double>();
    added.learning_rate_multiplier = group.value("learning_rate_multiplier", 1.0);
  }
  return options;
}

Graph step_of(const json& test_case) {
  Trace trace("step", true);
  const OptimizerResult result =
      optimize(trace, loss_of_given_gradients(trace, shapes()), options_of(test_case));
  trace.result("gradient_norm", result.gradient_norm);
  return trace.finish();
}

Literals start(bool averages) {
  Literals result;
  for (const auto& [name, values] : golden()["start"].items()) {
    result[name] = literal(name, values);
    if (averages) result[ema_name(name)] = result[name];
  }
  return result;
}

void expect_golden(Replayed& replayed, const json& test_case, bool exact) {
  for (size_t step = 0; step < test_case["steps"].size(); ++step) {
    Literals batch;
    for (const auto& [name, values] : golden()["gradients"][step].items())
      batch["gradient." + name] = literal(name, values);
    const Literals outputs = replayed.step(batch);
    const json& expected = test_case["steps"][step];
    const std::string where = "step " + std::to_string(step) + " ";
    expect_close(outputs.at("gradient_norm"), {expected["gradient_norm"].get<double>()}, exact,
                 where + "gradient_norm");
    for (const auto& [name, values] : expected["parameters"].items())
      expect_close(outputs.at(name), values, exact, where + name);
    const json averages = expected.value("averages", json::object());
    for (const auto& [name, values] : averages.items())
      expect_close(outputs.at(ema_name(name)), values, exact, where + "average of " + name);
  }
}

class OptimizerGolden : public testing::TestWithParam<int> {
 protected:
  const json& test_case() const { return golden()["cases"][static_cast<size_t>(GetParam())]; }
  Literals begin() const { return start(test_case().contains("ema_decay")); }
};

TEST_P(OptimizerGolden, InterpreterEqualsGolden) {
  expect_golden(*interpreted(step_of(test_case()), begin()), test_case(), true);
}

TEST_P(OptimizerGolden, CpuDeviceEqualsGolden) {
  expect_golden(*compiled(step_of(test_case()), begin()), test_case(), false);
}

INSTANTIATE_TEST_SUITE_P(Cases, OptimizerGolden, testing::Range(0, 7), [](const auto& parameter) {
  std::string name = golden()["cases"][static_cast<size_t>(parameter.param)]["title"];
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST(OptimizerGolden, CoversEveryCaseAndEveryOptimizer) {
  EXPECT_EQ(golden()["cases"].size(), 7U);
  for (const std::string& name : optimizer_names())
    EXPECT_TRUE(std::ranges::any_of(golden()["cases"], [&](const json& test_case) {
      return test_case["name"] == name;
    })) << name;
}

// --- muon ----------------------------------------------------------------------------------------
// The quintic does not converge to an orthogonal matrix: it brings singular values near one, at once.
TEST(Muon, OrthogonalizeBringsSingularValuesNearOne) {
  const auto gram_of = [](Shape shape, bool wide) {
    return evaluate({}, [&](GraphBuilder& builder, const std::vector<Tensor>&) {
      std::vector<double> values;
      for (int64_t i = 0; i < shape.elements(); ++i)
        values.push_back(std::sin(1.7 * static_cast<double>(i * i + 1)));
      const Tensor x = orthogonalize(constant(builder, {DType::f32, shape}, values));
      return matmul(x, x, {.transpose_a = !wide, .transpose_b = wide});
    });
  };
  for (const bool wide : {true, false}) {
    const Literal gram = gram_of(wide ? Shape{3, 7} : Shape{7, 3}, wide);
    // Eigenvalues of a symmetric matrix lie in Gershgorin's discs; the trace is their sum.
    double trace = 0;
    for (int64_t i = 0; i < 3; ++i) trace += gram.at(i * 3 + i);
    EXPECT_GT(trace, 3 * 0.65 * 0.65);
    EXPECT_LT(trace, 3 * 1.25 * 1.25);
  }
}

std::vector<std::string> moments_of(const Graph& graph, const std::string& parameter) {
  std::vector<std::string> result;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::moment && input.name.starts_with(parameter + "."))
      result.push_back(input.name.substr(parameter.size() + 1));
  return result;
}

// Tables and vectors go by AdamW (two moments), matrices by Muon (one), unless a group says otherwise.
TEST(Muon, TakesMatricesThatAreNoTables) {
  const auto graph_with = [](std::vector<ParameterGroup> groups) {
    Trace trace("t", true);
    const Tensor table = trace.parameter("table", {4, 3}, Initializer::ones());
    const Tensor head = trace.parameter("head", {4, 3}, Initializer::ones());
    const Tensor bias = trace.parameter("bias", {4}, Initializer::ones());
    const Tensor rows = gather(table, trace.batch("tokens", {DType::i32, {2}}));
    optimize(trace, reduce_sum(linear(rows, head, bias), {0, 1}),
             {.name = "muon", .groups = std::move(groups)});
    return trace.finish();
  };
  using Names = std::vector<std::string>;
  const Graph usual = graph_with({});
  EXPECT_EQ(moments_of(usual, "table"), (Names{"moment1", "moment2"}));
  EXPECT_EQ(moments_of(usual, "head"), (Names{"moment1"}));
  EXPECT_EQ(moments_of(usual, "bias"), (Names{"moment1", "moment2"}));
  const Graph other =
      graph_with({{.match = "head", .algorithm = "adamw"}, {.match = "*", .algorithm = "muon"}});
  EXPECT_EQ(moments_of(other, "table"), (Names{"moment1"}));
  EXPECT_EQ(moments_of(other, "head"), (Names{"moment1", "moment2"}));
  EXPECT_EQ(moments_of(other, "bias"), (Names{"moment1", "moment2"})) << "a vector is no matrix";
}

// --- choices -------------------------------------------------------------------------------------
TEST(Optimizer, UnknownNamesSuggestTheNearest) {
  const auto refusal = [](const OptimizerOptions& options) {
    return usage_error([&] {
      Trace trace("t", true);
      optimize(trace, reduce_sum(trace.parameter("w", {2}, Initializer::ones()), {0}), options);
    });
  };
  EXPECT_EQ(refusal({.name = "adam"}),
            "unknown optimizer 'adam'. Did you mean 'adamw'? There are adamw, sgd, lion, muon.");
  EXPECT_EQ(refusal({.norms = "group"}),
            "unknown choice of norms 'group'. Did you mean 'groups'? There are off, groups, "
            "parameters.");
}

TEST(Optimizer, WithoutMomentumThereIsNoMoment) {
  Trace trace("t", true);
  optimize(trace, reduce_sum(trace.parameter("w", {2}, Initializer::ones()), {0}),
           {.name = "sgd", .momentum = 0});
  EXPECT_TRUE(moments_of(trace.finish(), "w").empty());
}

}  // namespace
}  // namespace fullbore
