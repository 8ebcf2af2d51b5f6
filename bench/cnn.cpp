// The training step of a small convolutional network on 64 images of 32 x 32: rows "cnn/f32/workers:2" and "cnn/bf16/...".
// The counter `first_loss` is that of the first step. First values and images follow from a formula that
// bench/peers/cnn_beside_torch has too, so that losses can be compared.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fullbore/device/registry.h"
#include "fullbore/nn/image_layers.h"
#include "fullbore/nn/modules.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

constexpr int64_t kBatch = 64;

Tensor classify(Trace& trace, Tensor x) {
  const auto block = [&](const char* name, int64_t outputs) {
    const Tensor y =
        nn::conv2d(trace, name, x, outputs, {.kernel = 3, .padding = 1, .bias = false});
    x = relu(nn::batch_norm(trace, std::string(name) + "_norm", y));
  };
  block("conv1", 32);
  block("conv2", 64);
  x = max_pool(x, {.kernel = 2});
  block("conv3", 64);
  x = max_pool(x, {.kernel = 2});
  block("conv4", 128);
  x = reshape(adaptive_average_pool(x, 1), {kBatch, 128});
  return nn::linear(trace, "head", x, 10);
}

Tensor loss(Trace& trace, std::span<const Tensor> batch) {
  return reduce_mean(cross_entropy(classify(trace, batch[0]), batch[1]), {0});
}

// The fractional parts of multiples of the golden ratio, in [-1, 1).
std::vector<float> spread(int64_t count, double bound) {
  std::vector<float> values;
  for (int64_t i = 1; i <= count; ++i) {
    const double turn = static_cast<double>(i) * 0.6180339887498949;
    values.push_back(static_cast<float>(bound * (2 * (turn - std::floor(turn)) - 1)));
  }
  return values;
}

// Weights of more than one axis: bounded by 1 / sqrt(fan_in). Others keep their ones and zeros.
void fill(State& state) {
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (entry.role != Role::parameter) continue;
    const Shape& shape = entry.type.shape;
    std::vector<float> values(static_cast<size_t>(shape.elements()), 0);
    const int64_t fan_in = shape.rank() > 1 ? shape.elements() / shape[0] : 0;
    if (fan_in > 0)
      values = spread(shape.elements(), 1 / std::sqrt(static_cast<double>(fan_in)));
    else if (entry.name.ends_with("_norm.weight"))
      values.assign(values.size(), 1);
    state.write(static_cast<int>(i), std::as_bytes(std::span(values)));
  }
}

void run(benchmark::State& bench, DType precision, int workers) {
  const std::vector<BatchField> fields = {{"images", {DType::f32, {kBatch, 3, 32, 32}}},
                                          {"labels", {DType::i32, {kBatch}}}};
  OptimizerOptions optimizer;
  optimizer.schedule = {.learning_rate = 1e-3, .warmup_steps = 0, .total_steps = 1 << 20};
  const TracedStep step = trace_training_step(loss, fields, optimizer);
  State state = initial_state(step, 7, open_device("cpu", workers));
  fill(state);
  Program program = Program::compile(step.graph, state, {.precision = precision});
  const std::vector<float> images = spread(kBatch * 3 * 32 * 32, 2);
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < kBatch; ++i) labels.push_back(i * 7 % 10);
  const auto aligned = [](const void* from, size_t bytes) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    std::memcpy(memory, from, bytes);
    return std::unique_ptr<void, decltype(&std::free)>(memory, std::free);
  };
  const auto image_memory = aligned(images.data(), images.size() * sizeof(float));
  const auto label_memory = aligned(labels.data(), labels.size() * sizeof(int32_t));
  const std::vector<const void*> batch = {image_memory.get(), label_memory.get()};
  program.run(batch);
  bench.counters["first_loss"] = program.scalar("loss");
  for (int i = 0; i < 2; ++i) program.run(batch);
  for (auto unused : bench) program.run(batch);
}

[[maybe_unused]] const bool registered = [] {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  for (const DType precision : {DType::f32, DType::bf16})
    for (const int workers : {1, all}) {
      benchmark::RegisterBenchmark(
          fmt::format("cnn/{}/workers:{}", dtype_name(precision), workers).c_str(),
          [=](benchmark::State& bench) { run(bench, precision, workers); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->MeasureProcessCPUTime();
      if (workers == all) break;
    }
  return true;
}();

}  // namespace
