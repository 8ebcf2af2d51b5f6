#include "fullbore/optim/adamw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/runtime/program.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

using nlohmann::json;
using Literals = std::map<std::string, Literal>;

const json& golden() {
  static const json contents = [] {
    std::ifstream file(std::string(FB_SOURCE_DIR) + "/tests/optim/golden/adamw.json");
    return json::parse(file);
  }();
  return contents;
}

TensorType parameter_type(const std::string& name) {
  return {DType::f32, Shape(golden()["shapes"][name].get<std::vector<int64_t>>())};
}

// A step whose gradient by parameter p is the batch input "gradient.p".
Graph step_of_given_gradients(const json& test_case) {
  Trace trace("adamw", true);
  Tensor loss;
  for (const auto& [name, shape] : golden()["shapes"].items()) {
    const TensorType type = parameter_type(name);
    const Tensor parameter =
        trace.parameter(name, type.shape, Initializer::given(golden()["start"][name]));
    std::vector<int64_t> axes;
    for (int axis = 0; axis < type.shape.rank(); ++axis) axes.push_back(axis);
    const Tensor part = reduce_sum(parameter * trace.batch("gradient." + name, type), axes);
    loss = loss.valid() ? loss + part : part;
  }
  const json& schedule = golden()["schedule"];
  const OptimizerResult result =
      adamw(trace, loss,
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

// Replays a step: each call takes the batch, keeps State, and returns results and new State.
class Replayed {
 public:
  virtual ~Replayed() = default;
  virtual Literals step(const Literals& batch) = 0;
};

class Interpreted : public Replayed {
 public:
  explicit Interpreted(Graph graph) : graph_(std::move(graph)) {
    for (const auto& [name, values] : golden()["start"].items())
      state_[name] = Literal::of(parameter_type(name), values);
  }
  Literals step(const Literals& batch) override {
    Literals inputs = state_;
    inputs.insert(batch.begin(), batch.end());
    Literals outputs = interpret_by_name(graph_, inputs);
    for (const Graph::Output& output : graph_.outputs())
      if (output.updates >= 0) state_[output.name] = outputs.at(output.name);
    return outputs;
  }

 private:
  Graph graph_;
  Literals state_;
};

class Compiled : public Replayed {
 public:
  explicit Compiled(const Graph& graph)
      : state_(state_entries(graph)), team_(2), program_(Program::compile(graph, state_, team_)) {
    for (const auto& [name, values] : golden()["start"].items())
      std::ranges::copy(values.get<std::vector<float>>(), state_.span<float>(name).begin());
  }
  Literals step(const Literals& batch) override {
    std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
    std::vector<const void*> pointers;
    for (const Graph::Input& input : program_.plan().graph.inputs()) {
      if (is_state(input.role)) continue;
      const std::vector<char> bytes = batch.at(input.name).bytes();
      memory.emplace_back(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64), &std::free);
      std::ranges::copy(bytes, static_cast<char*>(memory.back().get()));
      pointers.push_back(memory.back().get());
    }
    program_.run(pointers);
    Literals outputs;
    for (const StateEntry& entry : state_.entries())
      outputs[entry.name] = Literal::from_bytes(entry.type, state_.data(state_.find(entry.name)));
    for (const char* name : {"learning_rate", "gradient_norm"})
      outputs[name] = Literal::scalar(DType::f32, program_.scalar(name));
    return outputs;
  }

 private:
  State state_;
  Team team_;
  Program program_;
};

double largest(const std::vector<double>& values) {
  double result = 0;
  for (double value : values) result = std::max(result, std::abs(value));
  return result;
}

// Relative to each element in double; in f32 relative to the largest of the tensor, for elements
// may be small differences of such.
void expect_close(const Literal& found, const std::vector<double>& golden_values, bool exact,
                  const std::string& what) {
  ASSERT_EQ(found.elements(), static_cast<int64_t>(golden_values.size())) << what;
  for (size_t i = 0; i < golden_values.size(); ++i) {
    const double bound = exact ? 1e-10 * std::abs(golden_values[i]) : 1e-6 * largest(golden_values);
    EXPECT_NEAR(found.at(static_cast<int64_t>(i)), golden_values[i], bound)
        << what << " element " << i;
  }
}

void expect_golden(Replayed& replayed, const json& test_case, bool exact) {
  Literals outputs;
  for (size_t step = 0; step < test_case["steps"].size(); ++step) {
    Literals batch;
    for (const auto& [name, values] : golden()["gradients"][step].items())
      batch["gradient." + name] = Literal::of(parameter_type(name), values);
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
  EXPECT_EQ(outputs.at("step").at(0), static_cast<double>(test_case["steps"].size()));
}

class AdamWGolden : public testing::TestWithParam<int> {
 protected:
  const json& test_case() const { return golden()["cases"][static_cast<size_t>(GetParam())]; }
};

TEST_P(AdamWGolden, InterpreterEqualsPyTorch) {
  Interpreted interpreted(step_of_given_gradients(test_case()));
  expect_golden(interpreted, test_case(), test_case()["exact"]);
}

TEST_P(AdamWGolden, CpuBackendEqualsPyTorch) {
  Compiled compiled(step_of_given_gradients(test_case()));
  expect_golden(compiled, test_case(), false);
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
  adamw(trace, reduce_sum(trained * frozen, {0, 1}), {});
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
                                                    {"step", "control i64[]"}};
  EXPECT_EQ(updated, expected);
}

TEST(AdamW, SharesItsStepWithTheRandomSource) {
  Trace trace("t", true);
  const Tensor weight = trace.parameter("w", {4}, Initializer::ones());
  adamw(trace, reduce_sum(dropout(weight, 0.5, trace.random()), {0}), {});
  const Graph graph = trace.finish();
  EXPECT_EQ(std::ranges::count(graph.inputs(), "step", &Graph::Input::name), 1);
}

// A parameter that the loss does not reach: no gradient, so it only decays, and only as a matrix.
TEST(AdamW, UnusedParametersOnlyDecay) {
  Trace trace("t", true);
  const Tensor used = trace.parameter("used", {1}, Initializer::ones());
  trace.parameter("matrix", {1, 2}, Initializer::ones());
  trace.parameter("vector", {2}, Initializer::ones());
  adamw(trace, reduce_sum(used, {0}),
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
  EXPECT_EQ(usage_error([&] { adamw(trace, x, {}); }), "adamw: the trace 't' has no parameters");
}

}  // namespace
}  // namespace fullbore
