// A step whose loss or gradient is not finite leaves everything but the count of replays as it was.
#include <gtest/gtest.h>

#include <limits>

#include "fullbore/optim/optimizer.h"
#include "tests/optim/replayed.h"

namespace fullbore {
namespace {

const std::map<std::string, Shape> kShapes = {{"matrix", {2, 3}}, {"vector", {3}}};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Graph step_of(const std::string& name, double clip_norm, double clip_value) {
  Trace trace("step", true);
  // The batch input "extra" is part of the loss alone: no gradient depends on it.
  const Tensor loss =
      loss_of_given_gradients(trace, kShapes) + trace.batch("extra", {DType::f32, {}});
  const OptimizerResult result = optimize(trace, loss,
                                          {.name = name,
                                           .schedule = {"cosine", 0.1, 0.01, 3, 9},
                                           .clip_norm = clip_norm,
                                           .clip_value = clip_value,
                                           .ema_decay = 0.9});
  trace.result("skipped", result.skipped);
  trace.result("learning_rate", result.learning_rate);
  return trace.finish();
}

Literals start() {
  Literals result;
  result["matrix"] = Literal::of({DType::f32, {2, 3}}, {1, -2, 3, -4, 5, -6});
  result["vector"] = Literal::of({DType::f32, {3}}, {0.5, 0.25, -1});
  return result;
}

Literals batch(double gradient, double extra) {
  Literals result;
  result["gradient.matrix"] = Literal::of({DType::f32, {2, 3}}, {1, 2, 3, gradient, 5, 6});
  result["gradient.vector"] = Literal::of({DType::f32, {3}}, {-1, 2, -3});
  result["extra"] = Literal::scalar(DType::f32, extra);
  return result;
}

struct Case {
  std::string optimizer;
  double clip_norm;
  double clip_value;
};

class Skipping : public testing::TestWithParam<Case> {};

TEST_P(Skipping, LeavesEveryBitButTheCountOfReplays) {
  const Case& test = GetParam();
  const Graph graph = step_of(test.optimizer, test.clip_norm, test.clip_value);
  const auto undisturbed = compiled(graph, start());
  const auto disturbed = compiled(graph, start());
  const std::vector<Literals> bad = {batch(kNan, 0),      batch(kInfinity, 0), batch(-kInfinity, 0),
                                     batch(1, kInfinity), batch(1, kNan),      batch(1e30, 0)};
  double replays = 0;
  for (int step = 0; step < 3; ++step) {
    const Literals good = batch(4 + step, 1);
    const Literals expected = undisturbed->step(good);
    Literals found = disturbed->step(good);
    ++replays;
    EXPECT_EQ(found.at("skipped").at(0), 0);
    for (const Literals& inputs : bad) {
      const Literals skipped = disturbed->step(inputs);
      ++replays;
      EXPECT_EQ(skipped.at("skipped").at(0), 1);
      for (const Graph::Output& output : graph.outputs()) {
        if (output.updates < 0 || output.name == "step") continue;
        EXPECT_EQ(skipped.at(output.name).bytes(), found.at(output.name).bytes())
            << output.name << " after step " << step;
      }
      EXPECT_EQ(skipped.at("step").at(0), replays);
    }
    for (const Graph::Output& output : graph.outputs()) {
      if (output.name == "step") continue;
      EXPECT_EQ(found.at(output.name).bytes(), expected.at(output.name).bytes()) << output.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Skipping,
                         testing::Values(Case{"adamw", 1, 0}, Case{"adamw", 0, 1},
                                         Case{"sgd", 0, 0}, Case{"lion", 1, 0.5},
                                         Case{"muon", 1, 0}),
                         [](const auto& parameter) {
                           return parameter.param.optimizer + std::to_string(parameter.index);
                         });

}  // namespace
}  // namespace fullbore
