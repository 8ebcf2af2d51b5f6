#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/base/philox.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "workloads/language/models.h"

/// Output head and loss as one op, whose logits exist a block of rows at a time, beside logits that exist whole.
namespace fullbore {
namespace {

using testing_support::cpu_device;

constexpr int64_t kBatch = 16;
constexpr int64_t kContext = 96;
constexpr int64_t kSteps = 4;
// So many that a block has the fewest rows, 512 of 1536.
constexpr LanguageModelConfig kLarge{
    .vocabulary = 16500, .layers = 1, .heads = 2, .width = 32, .context = kContext};
constexpr LanguageModelConfig kSmall{
    .vocabulary = 65, .layers = 1, .heads = 2, .width = 32, .context = kContext};

struct Job {
  LanguageModelConfig model = kLarge;
  LanguageModelLossOptions loss = {.fused_head = FusedHead::on};
  bool weighted = false;
  Microbatches parts = {};

  std::vector<BatchField> fields() const {
    const Shape shape{kBatch, kContext};
    std::vector<BatchField> fields = {{"tokens", {DType::i32, shape}},
                                      {"targets", {DType::i32, shape}}};
    if (weighted) fields.push_back({"weights", {DType::f32, shape}});
    return fields;
  }
  LossFunction function() const {
    return [*this](Trace& trace, std::span<const Tensor> batch) {
      LanguageModelLossOptions options = loss;
      if (weighted) options.weights = batch[2];
      const LanguageModelLoss found = gpt_loss(trace, batch[0], batch[1], model, options);
      return Loss(found.mean, found.predictions);
    };
  }

  TracedStep training(double loss_scale = 0) const {
    OptimizerOptions optimizer;
    optimizer.loss_scaling.initial = loss_scale;
    return trace_training_step(function(), fields(), optimizer, parts);
  }
  TracedStep evaluation() const { return trace_evaluation(function(), fields()); }
};

/// One batch after the other, in which a token's successor can be learned and some rows count for
/// nothing: the ends of documents.
class Batches {
 public:
  explicit Batches(const Job& job) : job_(job) {
    for (const BatchField& field : job.fields()) {
      memory_.push_back(allocate_tensor_memory(field.type.bytes()));
      pointers_.push_back(memory_.back().get());
    }
  }
  std::span<const void* const> next() {
    auto* const tokens = reinterpret_cast<int32_t*>(memory_[0].get());
    auto* const targets = reinterpret_cast<int32_t*>(memory_[1].get());
    for (int64_t i = 0; i < kBatch * kContext; ++i) {
      const auto token = static_cast<int32_t>(draws_.below(50));
      tokens[i] = token;
      targets[i] = i % 17 < i / kContext ? -1 : (token * 7 + 3) % 65;
      if (job_.weighted) reinterpret_cast<float*>(memory_[2].get())[i] = draw_weight();
    }
    return pointers_;
  }

 private:
  float draw_weight() { return static_cast<float>(draws_.uniform()); }

  const Job& job_;
  PhiloxStream draws_{5};
  std::vector<TensorMemory> memory_;
  std::vector<const void*> pointers_;
};

struct Learned {
  std::vector<double> losses, norms;
};

Learned learn(const Job& job, DType precision) {
  const TracedStep step = job.training(precision == DType::f16 ? 1024 : 0);
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state, {.precision = precision});
  Batches batches(job);
  Learned learned;
  for (int64_t i = 0; i < kSteps; ++i) {
    program.run(batches.next());
    learned.losses.push_back(program.scalar("loss"));
    learned.norms.push_back(program.scalar("gradient_norm"));
  }
  return learned;
}

void expect_equal(const Learned& a, const Learned& b, double tolerance) {
  for (size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_NEAR(a.losses[i], b.losses[i], tolerance * b.losses[i]) << "step " << i;
    EXPECT_NEAR(a.norms[i], b.norms[i], tolerance * b.norms[i]) << "step " << i;
  }
  EXPECT_LT(a.losses.back(), a.losses.front()) << "nothing was learned";
}

Job with(Job job, FusedHead head) {
  job.loss.fused_head = head;
  return job;
}

void expect_same_learning(const Job& job, DType precision, double tolerance) {
  expect_equal(learn(with(job, FusedHead::on), precision),
               learn(with(job, FusedHead::off), precision), tolerance);
}

TEST(GptFusedHead, LearnsAsWithWholeLogits) { expect_same_learning({}, DType::f32, 1e-5); }

// The slopes are rounded before they are multiplied by the loss's cotangent rather than after it.
TEST(GptFusedHead, LearnsAsWithWholeLogitsInLowPrecision) {
  expect_same_learning({}, DType::bf16, 4e-3);
  expect_same_learning({}, DType::f16, 1e-3);
}

TEST(GptFusedHead, LearnsAlikeFromWeightedSmoothedLosses) {
  Job job{.model = kSmall};
  job.weighted = true;
  job.loss.cross_entropy = {.label_smoothing = 0.1, .z_loss = 1e-3, .ignore_index = 10};
  expect_same_learning(job, DType::f32, 1e-5);
  job.model.tie_head = false;
  expect_same_learning(job, DType::f32, 1e-5);
}

Plan plan_of(const TracedStep& step, DType precision = DType::f32) {
  State state(state_entries(step.graph), cpu_device(2));
  return Program::compile(step.graph, state, {.precision = precision}).plan();
}

int64_t largest_value(const Graph& graph) {
  int64_t most = 0;
  for (int32_t i = 0; i < graph.value_count(); ++i)
    most = std::max(most, graph.type({i}).elements());
  for (const Node& node : graph.nodes())
    if (is_loop(node)) most = std::max(most, largest_value(*node.body));
  return most;
}

double contraction_flops(const Graph& graph) {
  double flops = 0;
  for (const Node& node : graph.nodes()) {
    if (node.op->is(Tag::contraction)) flops += node_cost(graph, node).flops;
    // A loop's iterations, and matmuls that a kernel has with what is behind them.
    if (node.body)
      flops += (is_loop(node) ? static_cast<double>(LoopShape(node).iterations) : 1.0) *
               contraction_flops(*node.body);
  }
  return flops;
}

constexpr int64_t kLogits = kBatch * kContext * kLarge.vocabulary;

TEST(GptFusedHead, NeverHasTheLogitsWhole) {
  for (const DType precision : {DType::f32, DType::bf16}) {
    const Plan whole = plan_of(with({}, FusedHead::off).training(), precision);
    const Plan in_blocks = plan_of(Job{}.training(), precision);
    EXPECT_EQ(largest_value(whole.graph), kLogits);
    EXPECT_EQ(largest_value(in_blocks.graph), kLogits / 3);
    // Logits are f32 in every precision: a softmax subtracts from them.
    const int64_t bytes = kLogits * dtype_bytes(DType::f32);
    for (const Buffer& buffer : in_blocks.buffers)
      EXPECT_LT(buffer.bytes, bytes / 2) << buffer.what;
    EXPECT_LT(in_blocks.arena_bytes, whole.arena_bytes - bytes / 2);
    // The loss and its gradient share their matmuls.
    EXPECT_NEAR(contraction_flops(in_blocks.graph), contraction_flops(whole.graph),
                0.01 * contraction_flops(whole.graph));
  }
}

// The matmuls add themselves to the gradient of the head, which lies where it is.
TEST(GptFusedHead, AddsUpTheGradientInPlace) {
  const Plan plan = plan_of(Job{}.training());
  const auto loop = std::ranges::find_if(plan.launches, [](const PlannedLaunch& launch) {
    return launch.kind == PlannedLaunch::Kind::loop;
  });
  ASSERT_NE(loop, plan.launches.end());
  EXPECT_EQ(loop->loop->iterations, 3);
  EXPECT_TRUE(loop->loop->carries.empty());
  EXPECT_TRUE(std::ranges::none_of(loop->loop->body, [](const PlannedLaunch& launch) {
    return launch.kind == PlannedLaunch::Kind::copy;
  }));
  EXPECT_TRUE(std::ranges::any_of(loop->loop->body, [&](const PlannedLaunch& launch) {
    return plan.kernels[static_cast<size_t>(launch.kernel)]->description().find("add") !=
           std::string::npos;
  }));
}

// Within the loop over parts of a batch, too, loss and gradient are made at once.
TEST(GptFusedHead, GoesWithAccumulation) {
  const double whole = contraction_flops(plan_of(with({}, FusedHead::off).training()).graph);
  const Learned at_once = learn({}, DType::f32);
  for (const Microbatches& parts : {Microbatches{2, 1}, Microbatches{1, 2}}) {
    Job job;
    job.parts = parts;
    expect_equal(learn(job, DType::f32), at_once, 1e-5);
    EXPECT_NEAR(contraction_flops(plan_of(job.training()).graph), whole, 0.01 * whole);
  }
}

TEST(GptFusedHead, EvaluationMakesNoGradient) {
  const Plan whole = plan_of(with({}, FusedHead::off).evaluation());
  const Plan in_blocks = plan_of(Job{}.evaluation());
  EXPECT_EQ(largest_value(in_blocks.graph), kLogits / 3);
  EXPECT_NEAR(contraction_flops(in_blocks.graph), contraction_flops(whole.graph),
              1e-6 * contraction_flops(whole.graph));
  EXPECT_LT(in_blocks.arena_bytes, whole.arena_bytes / 2);
}

// By itself it is left alone where the logits are a few blocks, and taken where they are more.
TEST(GptFusedHead, IsChosenWhereLogitsAreLarge) {
  const auto is_fused = [](int64_t vocabulary, int64_t batch) {
    Trace trace("loss", true);
    const TensorType type{DType::i32, {batch, kContext}};
    LanguageModelConfig model = kSmall;
    model.vocabulary = vocabulary;
    gpt_loss(trace, trace.batch("tokens", type), trace.batch("targets", type), model);
    const auto& nodes = trace.builder().graph().nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node& node) { return node.op->name == "linear_cross_entropy"; });
  };
  EXPECT_FALSE(is_fused(65, 64));
  EXPECT_FALSE(is_fused(16500, 16));  // three blocks
  EXPECT_TRUE(is_fused(16500, 32));   // six
}

TEST(GptFusedHead, PredictionsAreTheTargetsThatCount) {
  Job job{.model = kSmall};
  job.loss.cross_entropy.ignore_index = 10;
  const TracedStep step = job.evaluation();
  State state = initial_state(step, 3, cpu_device(2));
  Program program = Program::compile(step.graph, state);
  Batches batches(job);
  const std::span<const void* const> batch = batches.next();
  program.run(batch);
  const auto* targets = static_cast<const int32_t*>(batch[1]);
  const auto count = std::count_if(targets, targets + kBatch * kContext,
                                   [](int32_t target) { return target >= 0 && target != 10; });
  EXPECT_EQ(program.scalar("predictions"), static_cast<double>(count));
  EXPECT_LT(count, std::count_if(targets, targets + kBatch * kContext,
                                 [](int32_t target) { return target >= 0; }));
}

}  // namespace
}  // namespace fullbore
