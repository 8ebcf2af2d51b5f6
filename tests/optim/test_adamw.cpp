#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "fullbore/optim/optimizer.h"
#include "tests/optim/replayed.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using nlohmann::json;

const json& golden() {
  static const json contents = read_golden("adamw.json");
  return contents;
}

std::map<std::string, Shape> shapes() { return shapes_of(golden()["shapes"]); }

Literal literal(const std::string& name, const json& values) {
  return Literal::of({DType::f32, shapes().at(name)}, values);
}

Literals start() {
  Literals result;
  for (const auto& [name, values] : golden()["start"].items()) result[name] = literal(name, values);
  return result;
}

Graph step_of(const json& test_case) {
  Trace trace("adamw", true);
  const Tensor loss = loss_of_given_gradients(trace, shapes());
  const json& schedule = golden()["schedule"];
  const OptimizerResult result =
      optimize(trace, loss,
               {.schedule = {"cosine", schedule["learning_rate"], schedule["minimum_learning_rate"],
                             schedule["warmup_steps"], schedule["total_steps"]},
                .beta1 = test_case["beta1"],
                .beta2 = test_case["beta2"],
                .epsilon = test_case["epsilon"],
                .weight_decay = test_case["weight_decay"],
                .clip_norm = test_case["clip_norm"]});
  trace.result("learning_rate", result.learning_rate);
  trace.result("gradient_norm", result.gradient_norm);
  return trace.finish();
}

void expect_golden(Replayed& replayed, const json& test_case, bool exact) {
  Literals outputs;
  for (size_t step = 0; step < test_case["steps"].size(); ++step) {
    Literals batch;
    for (const auto& [name, values] : golden()["gradients"][step].items())
      batch["gradient." + name] = literal(name, values);
    outputs = replayed.step(batch);
    const json& expected = test_case["steps"][step];
    const std::string where = "step " + std::to_string(step) + " ";
    for (const char* result : {"learning_rate", "gradient_norm"})
      expect_close(outputs.at(result), {expected[result].get<double>()}, exact, where + result);
    for (const auto& [name, values] : expected["parameters"].items())
      expect_close(outputs.at(name), values, exact, where + name);
  }
  for (const std::string moment : {"moment1", "moment2"})
    for (const auto& [name, values] : test_case[moment].items())
      expect_close(outputs.at(name + "." + moment), values, exact, name + "." + moment);
  for (const char* counter : {"step", "updates"})
    EXPECT_EQ(outputs.at(counter).at(0), static_cast<double>(test_case["steps"].size()));
}

class AdamWGolden : public testing::TestWithParam<int> {
 protected:
  const json& test_case() const { return golden()["cases"][static_cast<size_t>(GetParam())]; }
};

TEST_P(AdamWGolden, InterpreterEqualsPyTorch) {
  expect_golden(*interpreted(step_of(test_case()), start()), test_case(), test_case()["exact"]);
}

TEST_P(AdamWGolden, CpuDeviceEqualsPyTorch) {
  expect_golden(*compiled(step_of(test_case()), start()), test_case(), false);
}

INSTANTIATE_TEST_SUITE_P(Cases, AdamWGolden, testing::Range(0, 4), [](const auto& parameter) {
  std::string name = golden()["cases"][static_cast<size_t>(parameter.param)]["name"];
  std::ranges::replace(name, ' ', '_');
  return name;
});

TEST(AdamWGolden, CoversEveryCase) { EXPECT_EQ(golden()["cases"].size(), 4U); }

// --- structure -----------------------------------------------------------------------------------
TEST(AdamW, UpdatesParametersMomentsAndStepButNothingFrozen) {
  Trace trace("t", true);
  const TensorType type{DType::f32, {2, 3}};
  const Tensor trained = trace.parameter("trained", type.shape, Initializer::ones());
  const Tensor frozen = trace.state("frozen", Role::frozen, type, Initializer::ones());
  optimize(trace, reduce_sum(trained * frozen, {0, 1}), {});
  const Graph graph = trace.finish();
  std::map<std::string, std::string> updated;
  for (const Graph::Output& output : graph.outputs()) {
    ASSERT_GE(output.updates, 0) << output.name;
    const Graph::Input& input = graph.inputs()[static_cast<size_t>(output.updates)];
    updated[input.name] = std::string(role_name(input.role)) + " " + graph.type(input.value).text();
  }
  const std::map<std::string, std::string> expected{{"trained", "parameter f32[2,3]"},
                                                    {"trained.moment1", "moment f32[2,3]"},
                                                    {"trained.moment2", "moment f32[2,3]"},
                                                    {"updates", "control i64[]"},
                                                    {"step", "control i64[]"}};
  EXPECT_EQ(updated, expected);
}

TEST(AdamW, SharesItsStepWithTheRandomSource) {
  Trace trace("t", true);
  const Tensor weight = trace.parameter("w", {4}, Initializer::ones());
  optimize(trace, reduce_sum(dropout(weight, 0.5, trace.random()), {0}), {});
  const Graph graph = trace.finish();
  EXPECT_EQ(std::ranges::count(graph.inputs(), "step", &Graph::Input::name), 1);
}

// A parameter that the loss does not reach: no gradient, so it only decays, and only as a matrix.
TEST(AdamW, UnusedParametersOnlyDecay) {
  Trace trace("t", true);
  const Tensor used = trace.parameter("used", {1}, Initializer::ones());
  trace.parameter("matrix", {1, 2}, Initializer::ones());
  trace.parameter("vector", {2}, Initializer::ones());
  optimize(trace, reduce_sum(used, {0}),
           {.schedule = {"constant", 0.5, 0, 0, 1}, .weight_decay = 0.5});
  const Literals next =
      interpret_by_name(trace.finish(), {{"matrix", Literal::of({DType::f32, {1, 2}}, {4, -8})},
                                         {"vector", Literal::of({DType::f32, {2}}, {4, -8})}});
  EXPECT_EQ(elements(next.at("matrix")), (std::vector<double>{3, -6}));
  EXPECT_EQ(elements(next.at("vector")), (std::vector<double>{4, -8}));
  EXPECT_EQ(elements(next.at("matrix.moment2")), (std::vector<double>{0, 0}));
}

TEST(AdamW, RefusesATraceWithoutParameters) {
  Trace trace("t", true);
  const Tensor x = trace.batch("x", {DType::f32, {}});
  EXPECT_EQ(usage_error([&] { optimize(trace, x, {}); }),
            "optimizer: the trace 't' has no parameters");
}

}  // namespace
}  // namespace fullbore
