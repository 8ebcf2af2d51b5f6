// A model of one's own in about a hundred lines: two spirals, wound into one another, are told apart
// by a small residual network. docs/guide/own-model.md walks through it.
//
// usage: spiral [STEPS]      prints the loss as it falls, and the share of new points it gets right
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <string>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/nn/modules.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"

using namespace fullbore;

namespace {

constexpr int64_t kBatch = 256;
constexpr int64_t kWidth = 64;
constexpr int kBlocks = 3;
constexpr uint64_t kSeed = 7;

// [model]
// points f32 [B,2] -> logits f32 [B,2], one per spiral
Tensor classify(Trace& trace, Tensor points) {
  Tensor x = nn::linear(trace, "input", points, kWidth);
  for (int i = 0; i < kBlocks; ++i) {
    const Scope block(trace, "blocks." + std::to_string(i));
    Tensor h = nn::layer_norm(trace, "norm", x);
    h = gelu(nn::linear(trace, "up", h, 2 * kWidth));
    x = x + nn::linear(trace, "down", h, kWidth);
  }
  return nn::linear(trace, "output", nn::layer_norm(trace, "final_norm", x), 2);
}
// [end]

// [data]
// Step `position` always sees the same points: a batch is a function of seed and position alone.
struct Batch {
  alignas(64) float points[kBatch][2];
  alignas(64) int32_t labels[kBatch];
  std::array<const void*, 2> fields() const { return {points, labels}; }

  explicit Batch(uint64_t position) {
    PhiloxStream draws(kSeed, position);
    for (int64_t i = 0; i < kBatch; ++i) {
      labels[i] = static_cast<int32_t>(draws.below(2));
      const double radius = draws.uniform(0.1, 1);
      const double angle = 3 * std::numbers::pi * radius + std::numbers::pi * labels[i];
      points[i][0] = static_cast<float>(radius * std::cos(angle) + 0.02 * draws.normal());
      points[i][1] = static_cast<float>(radius * std::sin(angle) + 0.02 * draws.normal());
    }
  }
};

const std::vector<BatchField> kFields = {{"points", {DType::f32, {kBatch, 2}}},
                                         {"labels", {DType::i32, {kBatch}}}};
// [end]

// [loss]
Tensor loss(Trace& trace, std::span<const Tensor> batch) {
  return reduce_mean(cross_entropy(classify(trace, batch[0]), batch[1]), {0});
}
// [end]

// [accuracy]
// Another program on the same weights.
Graph trace_accuracy() {
  Trace trace("accuracy", /*training=*/false);
  const Tensor points = trace.batch(kFields[0].name, kFields[0].type);
  const Tensor labels = trace.batch(kFields[1].name, kFields[1].type);
  const Tensor hits = equal(cast(argmax(classify(trace, points), 1), DType::i32), labels);
  trace.result("accuracy", reduce_mean(cast(hits, DType::f32), {0}));
  return trace.finish();
}
// [end]

// [train]
void train(int64_t steps) {
  OptimizerOptions optimizer;
  optimizer.schedule = {.learning_rate = 3e-3, .warmup_steps = 20, .total_steps = steps};
  const TracedStep step = trace_training_step(loss, kFields, optimizer);

  State state = initial_state(step, kSeed, open_device("cpu"));
  Program program = Program::compile(step.graph, state);
  std::printf("%lld bytes planned, %zu launches a step\n",
              static_cast<long long>(program.plan().peak_bytes()), program.plan().launches.size());

  for (int64_t i = 0; i < steps; ++i) {
    const Batch batch(static_cast<uint64_t>(i));
    program.run(batch.fields());
    if (i % 100 == 0 || i + 1 == steps)
      std::printf("step %4lld  loss %.4f\n", static_cast<long long>(i), program.scalar("loss"));
  }

  Program accuracy = Program::compile(trace_accuracy(), state);
  const Batch unseen(1U << 30);
  accuracy.run(unseen.fields());
  std::printf("%.1f %% of new points are right\n", 100 * accuracy.scalar("accuracy"));
}
// [end]

}  // namespace

int main(int argc, char** argv) {
  try {
    train(argc > 1 ? std::atoll(argv[1]) : 600);
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "spiral: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
