#include "fullbore/trace/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <type_traits>

#include "fullbore/ir/verify.h"
#include "fullbore/trace/distinct_layers.h"
#include "tests/support/evaluate.h"
#include "tests/support/interpret_by_name.h"

namespace fullbore {
namespace {

const TensorType kVector{DType::f32, {3}};

std::string location(const char* file, int line) { return SourceLoc{file, line}.text(); }

TEST(Trace, SameNameIsTheSameTensor) {
  Trace trace("step", true);
  const Tensor first = trace.state("w", Role::parameter, kVector, Initializer::ones());
  const Tensor again = trace.state("w", Role::parameter, kVector, Initializer::normal(7));
  EXPECT_EQ(first.value(), again.value());
  ASSERT_EQ(trace.parameters().size(), 1U);
  EXPECT_EQ(trace.parameters()[0].name, "w");
  // Whoever asks first says how it starts.
  EXPECT_EQ(trace.initializers().at("w").kind, Initializer::Kind::ones);
  EXPECT_EQ(trace.finish().inputs().size(), 1U);
}

TEST(Trace, RefusesAnotherTypeOfTheSameState) {
  Trace trace("step", true);
  trace.state("w", Role::parameter, kVector, Initializer::zeros());
  const int line = __LINE__ + 2;
  const auto ask = [&](Role role, TensorType type) {
    return usage_error([&, role] { trace.state("w", role, type, Initializer::zeros()); });
  };
  const std::string where = " (" + location(__FILE__, line) + ")";
  EXPECT_EQ(ask(Role::parameter, {DType::f32, {4}}),
            "state 'w' is parameter f32[4] here and parameter f32[3] elsewhere" + where);
  EXPECT_EQ(ask(Role::parameter, {DType::f64, {3}}),
            "state 'w' is parameter f64[3] here and parameter f32[3] elsewhere" + where);
  EXPECT_EQ(ask(Role::moment, kVector),
            "state 'w' is moment f32[3] here and parameter f32[3] elsewhere" + where);
  EXPECT_EQ(ask(Role::parameter, kVector), "");
}

// Unrolled, a recursion of a million steps would take gigabytes before it is planned.
TEST(Trace, RefusesAMillionStepsThatAreUnrolled) {
  Trace trace("step", true);
  Tensor x = trace.state("w", Role::parameter, kVector, Initializer::ones());
  int64_t steps = 0;
  const int line = __LINE__ + 2;
  const std::string message = usage_error([&] {
    for (; steps < 1'000'000; ++steps) x = exp(x);
  });
  EXPECT_EQ(message,
            "graph 'step' has more than 262144 nodes: parts that repeat are for a loop to repeat, "
            "scan() or while_loop() (fullbore/trace/control.h) (" +
                location(__FILE__, line) + ")");
  EXPECT_EQ(steps, 262'144);
}

TEST(Trace, ParametersAreOfRoleParameterAlone) {
  Trace trace("step", true);
  trace.state("frozen", Role::frozen, kVector, Initializer::zeros());
  trace.state("moment", Role::moment, kVector, Initializer::zeros());
  trace.parameter("b", {2}, Initializer::zeros());
  trace.parameter("a", {3}, Initializer::zeros());
  ASSERT_EQ(trace.parameters().size(), 2U);
  EXPECT_EQ(trace.parameters()[0].name, "b");
  EXPECT_EQ(trace.parameters()[1].name, "a");
  EXPECT_EQ(trace.parameters()[1].tensor.type(), kVector);
}

TEST(Trace, ScopesNameParametersAndNodes) {
  Trace trace("step", true);
  const Tensor x = trace.batch("x", kVector);
  Tensor y;
  {
    const Scope layer(trace, "layers.0");
    {
      const Scope attention(trace, "attention");
      y = x + trace.parameter("bias", {3}, Initializer::zeros());
    }
    y = y * trace.parameter("gain", {3}, Initializer::ones());
  }
  y = y - trace.parameter("bias", {3}, Initializer::zeros());
  trace.result("y", y);
  const Graph graph = trace.finish();
  ASSERT_EQ(graph.inputs().size(), 4U);
  EXPECT_EQ(graph.inputs()[1].name, "layers.0.attention.bias");
  EXPECT_EQ(graph.inputs()[2].name, "layers.0.gain");
  EXPECT_EQ(graph.inputs()[3].name, "bias");
  ASSERT_EQ(graph.nodes().size(), 3U);
  EXPECT_EQ(graph.nodes()[0].scope, "layers.0.attention");
  EXPECT_EQ(graph.nodes()[1].scope, "layers.0");
  EXPECT_EQ(graph.nodes()[2].scope, "");
}

TEST(Trace, ScopeEndsWhenAnErrorLeavesIt) {
  Trace trace("step", true);
  usage_error([&] {
    const Scope scope(trace, "broken");
    trace.parameter("w", {2}, Initializer::zeros()) + trace.batch("x", kVector);
  });
  EXPECT_EQ(trace.builder().scope(), "");
}

TEST(Trace, RandomSitesAreDistinctAndShareSeedAndStep) {
  Trace trace("step", true);
  const RandomSource first = trace.random();
  const RandomSource second = trace.random();
  EXPECT_NE(first.site, second.site);
  EXPECT_EQ(first.seed.value(), second.seed.value());
  EXPECT_EQ(first.step.value(), second.step.value());
  EXPECT_FALSE(first.iteration.valid());
  trace.result("a", random_uniform(first, {DType::f32, {64}}));
  trace.result("b", random_uniform(second, {DType::f32, {64}}));

  const Graph graph = trace.finish();
  for (const char* name : {"random.seed", "step"}) {
    const int index = graph.find_input(name);
    ASSERT_GE(index, 0) << name;
    const Graph::Input& input = graph.inputs()[static_cast<size_t>(index)];
    EXPECT_EQ(input.role, Role::control);
    EXPECT_EQ(graph.type(input.value).text(), "i64[]");
  }
  const auto draws = [&](double seed, double step) {
    return interpret_by_name(graph, {{"random.seed", integers(DType::i64, {}, {seed})},
                                     {"step", integers(DType::i64, {}, {step})}});
  };
  const auto now = draws(1, 5);
  EXPECT_NE(elements(now.at("a")), elements(now.at("b")));
  EXPECT_EQ(elements(now.at("a")), elements(draws(1, 5).at("a")));
  EXPECT_NE(elements(now.at("a")), elements(draws(1, 6).at("a")));
  EXPECT_NE(elements(now.at("a")), elements(draws(2, 5).at("a")));
}

TEST(Trace, NoRandomStateUnlessDrawn) {
  Trace trace("step", true);
  trace.result("x", trace.batch("x", kVector) + 1.0);
  EXPECT_EQ(trace.finish().inputs().size(), 1U);
}

TEST(Trace, UpdatesAreOutputsOfTheStatesTheyReplace) {
  Trace trace("step", true);
  const Tensor x = trace.batch("x", kVector);
  const Tensor a = trace.state("a", Role::parameter, kVector, Initializer::zeros());
  const Tensor b = trace.state("b", Role::recurrent, kVector, Initializer::zeros());
  trace.update(b, b + x);
  trace.update(a, a - x);
  trace.result("sum", a + b);
  const Graph graph = trace.finish();
  ASSERT_EQ(verify(graph), "");
  ASSERT_EQ(graph.outputs().size(), 3U);
  const auto updated = [&](const std::string& name) {
    const int output = graph.find_output(name);
    return output < 0 ? -2 : graph.outputs()[static_cast<size_t>(output)].updates;
  };
  EXPECT_EQ(updated("sum"), -1);
  EXPECT_EQ(updated("a"), graph.find_input("a"));
  EXPECT_EQ(updated("b"), graph.find_input("b"));

  const auto next = interpret_by_name(graph, {{"x", Literal::of(kVector, {1, 2, 3})},
                                              {"a", Literal::of(kVector, {10, 10, 10})},
                                              {"b", Literal::of(kVector, {5, 5, 5})}});
  EXPECT_EQ(elements(next.at("a")), (std::vector<double>{9, 8, 7}));
  EXPECT_EQ(elements(next.at("b")), (std::vector<double>{6, 7, 8}));
  EXPECT_EQ(elements(next.at("sum")), (std::vector<double>{15, 15, 15}));
}

TEST(Trace, RefusesWrongUpdates) {
  Trace trace("step", true);
  const Tensor x = trace.batch("x", kVector);
  const Tensor a = trace.state("a", Role::parameter, kVector, Initializer::zeros());
  const Tensor b = trace.state("b", Role::recurrent, kVector, Initializer::zeros());
  trace.update(a, a + x);
  const int line = __LINE__ + 2;
  const auto update = [&](Tensor state, Tensor next) {
    return usage_error([&] { trace.update(state, next); });
  };
  const std::string where = " (" + location(__FILE__, line) + ")";
  EXPECT_EQ(update(a, a - x), "State is updated twice in one step" + where);
  EXPECT_EQ(update(x, a), "an update of what is no State" + where);
  EXPECT_EQ(update(a + x, a), "an update of what is no State" + where);
  EXPECT_EQ(update(b, reduce_sum(x, {0})), "State f32[3] is updated by f32[]" + where);
  EXPECT_EQ(update(b, Tensor()), "an empty Tensor was used" + where);
}

// A name that is taken twice by mistake would silently make one layer of two.
TEST(Trace, LayersOfOneNameSayThatTheyShare) {
  Trace trace("step", true);
  const auto ask = [&] { return trace.parameter("w", {3}, Initializer::zeros()); };
  const int line = __LINE__ - 1;
  const Tensor first = ask();
  EXPECT_EQ(ask().value(), first.value()) << "off at first";
  set_distinct_layers(true);
  const std::string here = location(__FILE__, line);
  EXPECT_EQ(usage_error(ask),
            "parameter 'w' is that of another layer already, at " + here +
                ": give this layer a name of its own, or say share(trace) where both mean the same "
                "weights (" +
                here + ")");
  {
    const SharedScope shared = share(trace);
    EXPECT_EQ(ask().value(), first.value());
  }
  EXPECT_NE(usage_error(ask), "");
  trace.begin_model();
  EXPECT_EQ(ask().value(), first.value());
  set_distinct_layers(false);
  EXPECT_EQ(trace.parameters().size(), 1U);
}

TEST(Trace, LayersHaveNames) {
  Trace trace("step", true);
  const auto ask = [&](const std::string& layer, const std::string& name) {
    const Scope scope(trace, layer);
    return usage_error([&] { trace.parameter(name, {3}, Initializer::zeros()); });
  };
  EXPECT_THAT(ask("", "weight"), testing::HasSubstr("no name, which gives '(unnamed).weight'"));
  EXPECT_THAT(ask("layer", ""), testing::HasSubstr("no name, which gives 'layer.'"));
  const Scope scope(trace, "block");
  EXPECT_THAT(ask("", "weight"),
              testing::HasSubstr("no name, which gives 'block.(unnamed).weight'"));
}

// Not even its builder is left, so there is nothing that could be asked.
TEST(Trace, TensorsAreRefusedAfterTheirTrace) {
  Tensor kept;
  {
    const Trace trace("step", true);
    kept = Trace("step", true).batch("x", kVector);
  }
  Trace other("other", true);  // takes the place of the first
  const Tensor own = other.batch("x", kVector);
  EXPECT_TRUE(kept.valid());
  EXPECT_FALSE(kept.alive());
  const int line = __LINE__ + 1;
  const std::string shape = usage_error([&] { kept.dim(0); });
  EXPECT_EQ(shape, "a Tensor was used after the trace or the body of a loop that made it (" +
                       location(__FILE__, line) + ")");
  const std::string sum = usage_error([&] { return own + kept; });
  EXPECT_THAT(sum, testing::HasSubstr("belongs to a trace"));
  EXPECT_THAT(sum, testing::HasSubstr(location(__FILE__, line + 3)));
  EXPECT_THAT(usage_error([&] { own.dim(1); }), testing::StartsWith("axis 1 of f32[3] ("));
  EXPECT_THAT(usage_error([&] { Tensor().rank(); }), testing::StartsWith("an empty Tensor was"));
  static_assert(!std::is_constructible_v<bool, Tensor>);
}

// Shapes that do not go with one another are refused by the line that asked for them.
TEST(Trace, ShapesThatDoNotFitNameTheLine) {
  Trace trace("step", true);
  const Tensor x = trace.batch("x", {DType::f32, {6}});
  const SourceLoc loc{"models/mine.cpp", 12};
  const auto fails = [](const std::function<void()>& action, const std::string& words) {
    const std::string error = usage_error(action);
    EXPECT_THAT(error, testing::HasSubstr(words));
    EXPECT_THAT(error, testing::EndsWith("(models/mine.cpp:12)"));
  };
  fails([&] { reshape(x, {4}, loc); }, "reshape: x f32[6] of 6 elements to [4] of 4");
  fails(
      [&] {
        reshape(x, {4, -1}, loc);
      },
      "reshape: x f32[6] of 6 elements to [4,-1]: the others are 4, which does not divide that");
  fails(
      [&] {
        reshape(x, {-1, 2, -1}, loc);
      },
      "reshape: x f32[6] of 6 elements to [-1,2,-1]: one extent may be -1, and takes what the "
      "others leave");
  fails([&] { reshape(x, {0, -1}, loc); }, "does not follow where another extent is 0");
  fails([&] { reduce_mean(x, {}, false, loc); }, "needs at least one axis");
}

TEST(Trace, TellsTrainingFromEvaluation) {
  EXPECT_TRUE(Trace("step", true).training());
  EXPECT_FALSE(Trace("step", false).training());
  EXPECT_EQ(Trace("evaluate", false).finish().name(), "evaluate");
}

}  // namespace
}  // namespace fullbore
