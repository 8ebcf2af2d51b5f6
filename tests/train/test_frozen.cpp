// Frozen parameters are constants of the step: nothing is computed, kept or written for them.
#include "fullbore/train/frozen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/compile.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_outputs.h"
#include "tests/support/device.h"
#include "tests/support/gradcheck.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kRows = 32;
constexpr int64_t kWidth = 24;
constexpr int64_t kClasses = 40;
constexpr int64_t kBlocks = 4;
const std::vector<BatchField> kFields = {{"x", {DType::f32, {kRows, kWidth}}},
                                         {"targets", {DType::i32, {kRows}}}};
// No other matrix of the model has these extents, so that whatever has them is of these weights.
constexpr int64_t kWide = 56;

/// An adapter, and a model behind it: h += W2 relu(W1 h), four times, then a head.
Loss adapted(Trace& trace, std::span<const Tensor> batch) {
  const Tensor adapter = trace.parameter("adapter", {kWidth, kWidth}, Initializer::normal(0.2));
  Tensor hidden = matmul(batch[0], adapter);
  const Scope scope(trace, "model");
  for (int64_t i = 0; i < kBlocks; ++i) {
    const Scope block(trace, "blocks." + std::to_string(i));
    const Tensor up = trace.parameter("up", {kWide, kWidth}, Initializer::normal(0.2));
    const Tensor down = trace.parameter("down", {kWidth, kWide}, Initializer::normal(0.2));
    const Tensor gain = trace.parameter("gain", {kWidth}, Initializer::ones());
    hidden = hidden + linear(relu(linear(rms_norm(hidden, gain), up)), down);
  }
  const Tensor head = trace.parameter("head", {kClasses, kWidth}, Initializer::normal(0.2));
  const Tensor sum = linear_cross_entropy(hidden, head, batch[1], {.rows = kRows / 2});
  return {sum / static_cast<double>(kRows)};
}

const LossFunction kFrozen = with_frozen(adapted, {"model.*"});

std::vector<std::string> names_of(const Graph& graph, Role role) {
  std::vector<std::string> names;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == role) names.push_back(input.name);
  return names;
}

/// Does a node, or one in the body of a loop, compute a matrix of these extents?
bool makes_matrix(const Graph& graph, int64_t rows, int64_t columns) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    if (node.body && makes_matrix(*node.body, rows, columns)) return true;
    return std::ranges::any_of(node.outputs, [&](Value output) {
      const Shape& shape = graph.type(output).shape;
      return shape == Shape{rows, columns} || shape == Shape{columns, rows};
    });
  });
}

Plan planned(const Graph& graph) {
  const std::shared_ptr<Device> device = cpu_device(1);
  return compile_plan(graph, *device, *device->compiler(), {});
}

TEST(Frozen, HasNoGradientNoMomentsNoAverage) {
  const OptimizerOptions options{.ema_decay = 0.9};
  const Graph graph = trace_training_step(kFrozen, kFields, options).graph;
  EXPECT_THAT(names_of(graph, Role::parameter), ElementsAre("adapter"));
  EXPECT_EQ(names_of(graph, Role::frozen).size(), 3U * kBlocks + 1);
  EXPECT_THAT(names_of(graph, Role::moment), ElementsAre("adapter.moment1", "adapter.moment2"));
  EXPECT_THAT(names_of(graph, Role::ema), ElementsAre("adapter.average"));
  for (const Graph::Output& output : graph.outputs())
    if (output.updates >= 0) {
      EXPECT_NE(graph.inputs()[static_cast<size_t>(output.updates)].role, Role::frozen)
          << output.name;
    }
  const auto makes = [](const Plan& plan, int64_t rows, int64_t columns) {
    return makes_matrix(plan.graph, rows, columns);
  };
  const Plan frozen = planned(graph);
  const Plan trained = planned(trace_training_step(adapted, kFields, options).graph);
  EXPECT_TRUE(makes(trained, kWide, kWidth));
  EXPECT_TRUE(makes(trained, kClasses, kWidth));
  EXPECT_FALSE(makes(frozen, kWide, kWidth)) << plan_text(frozen);
  EXPECT_FALSE(makes(frozen, kClasses, kWidth)) << plan_text(frozen);
}

// The norms' values, which only the gradient of `up` reads, and those of relu, which only that of `down` does where its
// sign is kept as well, need not be kept.
TEST(Frozen, KeepsNoActivationThatOnlyAWeightGradientReads) {
  const auto arena = [](const LossFunction& loss) {
    return planned(trace_training_step(loss, kFields, {.name = "sgd", .momentum = 0}).graph)
        .arena_bytes;
  };
  EXPECT_LE(arena(kFrozen) + kBlocks * kRows * kWidth * 4, arena(adapted));
}

TEST(Frozen, GradientsThroughItAreThoseOfFiniteDifferences) {
  Trace trace("frozen", true);
  std::vector<Tensor> batch;
  for (const BatchField& field : kFields) batch.push_back(trace.batch(field.name, field.type));
  trace.result("loss", kFrozen(trace, batch).mean);
  GradcheckCase check{trace.finish(), {}, {}};
  for (const Graph::Input& input : check.graph.inputs()) {
    const TensorType& type = check.graph.type(input.value);
    if (is_floating(type.dtype)) {
      check.inputs.push_back(random_literal(type, 3, check.inputs.size()));
    } else {
      std::vector<double> targets;
      for (int64_t i = 0; i < kRows; ++i) targets.push_back(static_cast<double>(i % kClasses));
      check.inputs.push_back(Literal::of(type, targets));
    }
    check.wanted.push_back(input.role == Role::parameter);
  }
  const GradcheckResult result = gradcheck(check);
  EXPECT_EQ(result.problem, "");
  EXPECT_FALSE(result.all_zero);
}

struct alignas(64) Batch {
  float x[kRows * kWidth];
  alignas(64) int32_t targets[kRows];
};

Batch batch_of(uint64_t position) {
  Batch batch = {};
  PhiloxStream draws(5, position);
  for (float& value : batch.x) value = static_cast<float>(draws.normal());
  for (size_t i = 0; i < kRows; ++i) batch.targets[i] = static_cast<int32_t>(i + position) % 7;
  return batch;
}

/// The values of all State after three steps.
std::map<std::string, std::vector<float>> trained(const LossFunction& loss,
                                                  const Microbatches& parts,
                                                  std::vector<double>& losses) {
  const TracedStep step = trace_training_step(
      loss, kFields, {.schedule = {"constant", 0.01, 0, 0, 1}, .weight_decay = 0.5}, parts);
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state);
  for (uint64_t position = 0; position < 3; ++position) {
    const Batch batch = batch_of(position);
    const void* const pointers[] = {batch.x, batch.targets};
    program.run(pointers);
    losses.push_back(program.scalar("loss"));
  }
  std::map<std::string, std::vector<float>> values;
  for (const StateEntry& entry : state.entries())
    if (entry.type.dtype == DType::f32) values[entry.name] = state.read<float>(entry.name);
  return values;
}

TEST(Frozen, BytesAreTheSameAfterTraining) {
  const TracedStep step = trace_training_step(kFrozen, kFields, {});
  const State start = initial_state(step, 3, cpu_device(1));
  for (const Microbatches& parts : {Microbatches{1, 1}, Microbatches{2, 2}}) {
    std::vector<double> losses;
    const auto values = trained(kFrozen, parts, losses);
    for (const StateEntry& entry : start.entries())
      if (entry.role == Role::frozen) {
        EXPECT_EQ(values.at(entry.name), start.read<float>(entry.name)) << entry.name;
      }
    EXPECT_NE(values.at("adapter"), start.read<float>("adapter"));
    EXPECT_LT(losses.back(), losses.front());
  }
}

// What is trained goes the way that it goes where all else is trained too: at the first step at least.
TEST(Frozen, LeavesTheGradientOfTheRestAsItIs) {
  const auto norm = [](const LossFunction& loss) {
    const TracedStep step = trace_training_step(loss, kFields, {.norms = "parameters"});
    State state = initial_state(step, 3, cpu_device(2));
    Program program = Program::compile(step.graph, state);
    const Batch batch = batch_of(0);
    const void* const pointers[] = {batch.x, batch.targets};
    program.run(pointers);
    return program.scalar("gradient_norm/adapter");
  };
  EXPECT_NEAR(norm(kFrozen) / norm(adapted), 1, 1e-6);
}

TEST(Frozen, AScopeOfTheModelsOwnDoesTheSame) {
  const LossFunction scoped = [](Trace& trace, std::span<const Tensor> batch) {
    const Tensor scale = trace.parameter("scale", {kWidth}, Initializer::ones());
    const FrozenScope frozen(trace);
    const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::normal(1));
    return Loss(reduce_mean(abs(batch[0] * scale * weight), {0, 1}));
  };
  const Graph graph = trace_training_step(scoped, kFields, {}).graph;
  EXPECT_THAT(names_of(graph, Role::parameter), ElementsAre("scale"));
  EXPECT_THAT(names_of(graph, Role::frozen), ElementsAre("weight"));
}

template <class Run>
std::string refusal(const Run& run) {
  try {
    run();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Frozen, NamesThatMatchNothingAndStepsThatTrainNothingAreRefused) {
  const auto tried = [](const std::vector<std::string>& patterns) {
    return refusal([&] { trace_training_step(with_frozen(adapted, patterns), kFields, {}); });
  };
  EXPECT_EQ(tried({"model.*", "adaptor"}),
            "train.freeze: 'adaptor' matches no parameter. The nearest is 'adapter'.");
  EXPECT_THAT(tried({"*"}), HasSubstr("has no parameters"));
  const LossFunction both = [](Trace& trace, std::span<const Tensor> batch) {
    const Tensor free = trace.parameter("weight", {kWidth}, Initializer::ones());
    const FrozenScope frozen(trace);
    const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::ones());
    return Loss(reduce_mean(batch[0] * free * weight, {0, 1}));
  };
  EXPECT_THAT(refusal([&] { trace_training_step(both, kFields, {}); }),
              HasSubstr("state 'weight' is frozen f32[24] here and parameter f32[24] elsewhere"));
}

// --- dead losses ----------------------------------------------------------------------------------

/// The adapted loss, and one of the frozen model's own that no trained parameter is in.
Loss with_text(Trace& trace, std::span<const Tensor> batch) {
  const Loss latent = adapted(trace, batch);
  const Tensor one = full(trace.builder(), {DType::f32, {}}, 1);
  Tensor hidden = batch[0];
  {
    const Scope scope(trace, "model");
    const Scope block(trace, "blocks.0");
    const SharedScope shared = share(trace);
    const Tensor up = trace.parameter("up", {kWide, kWidth}, Initializer::normal(0.2));
    hidden = tanh(linear(hidden, up));
  }
  const Tensor text = reduce_mean(hidden * hidden, {0, 1});
  Loss loss(latent.mean + text);
  loss.terms = {{latent.mean, one, "latent"}, {text, one, "text"}};
  return loss;
}

size_t node_count(const Graph& graph) {
  size_t count = graph.nodes().size();
  for (const Node& node : graph.nodes())
    if (node.body) count += node_count(*node.body);
  return count;
}

TEST(DeadLoss, IsFoundAndHasNoBackwardPass) {
  const LossFunction loss = with_frozen(with_text, {"model.*"});
  const TracedStep step = trace_training_step(loss, kFields, {});
  EXPECT_THAT(step.dead_losses, ElementsAre("text"));
  EXPECT_THAT(step.metrics, ElementsAre("text"));
  EXPECT_THAT(trace_training_step(with_text, kFields, {}).dead_losses, ElementsAre());
  // Its nodes are those of its forward pass, and none where the metric is not asked for.
  const auto nodes = [](const Graph& graph) { return node_count(planned(graph).graph); };
  const Graph quiet = with_metrics(step.graph, MetricsLevel::loss);
  const Graph without =
      with_metrics(trace_training_step(kFrozen, kFields, {}).graph, MetricsLevel::loss);
  EXPECT_EQ(nodes(quiet), nodes(without));
  const size_t forward = node_count(trace_evaluation(loss, kFields).graph) -
                         node_count(trace_evaluation(kFrozen, kFields).graph);
  const size_t whole =
      node_count(step.graph) - node_count(trace_training_step(kFrozen, kFields, {}).graph);
  EXPECT_LE(whole, forward + 2);  // the names of results may take a cast
}

TEST(DeadLoss, IsNoPartOfTheLossAlsoInMicrobatches) {
  const LossFunction loss = with_frozen(with_text, {"model.*"});
  for (const Microbatches& parts : {Microbatches{1, 1}, Microbatches{2, 1}, Microbatches{1, 2}}) {
    std::vector<double> with, without;
    const auto values = trained(loss, parts, with);
    const auto expected = trained(kFrozen, parts, without);
    for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-5);
    for (size_t i = 0; i < values.at("adapter").size(); ++i)
      EXPECT_NEAR(values.at("adapter")[i], expected.at("adapter")[i], 1e-4);
    const TracedStep step = trace_training_step(loss, kFields, {}, parts);
    EXPECT_THAT(step.dead_losses, ElementsAre("text"));
  }
}

TEST(DeadLoss, AllTermsDeadIsAnError) {
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) {
    trace.parameter("idle", {2}, Initializer::ones());
    const Tensor one = full(trace.builder(), {DType::f32, {}}, 1);
    Loss made(reduce_mean(batch[0], {0, 1}));
    made.terms = {{made.mean, one, "text"}};
    return made;
  };
  const std::string message = refusal([&] { trace_training_step(loss, kFields, {}); });
  EXPECT_EQ(message.rfind("the loss depends on no trained parameter; it is the sum of text "
                          "(train/test_frozen.cpp:",
                          0),
            0U)
      << message;
  EXPECT_NO_THROW(trace_evaluation(loss, kFields));
}

}  // namespace
}  // namespace fullbore
