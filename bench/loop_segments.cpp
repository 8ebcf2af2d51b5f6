/// The gradient of a gated recurrence that may stop by itself, with its tape kept whole and in segments.
///
///     bench_loop_segments --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true
///
/// `gated/iterations/width/rows/segments`: a step of training by it; 1 segment keeps everything. One thread; compare CPU
/// times where the machine is shared. Counters: the plan's peak and arithmetic, and the loss, which segments do not change.
#include <benchmark/benchmark.h>

#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/aligned_copy.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

constexpr int kThreads = 1;

Graph step(int64_t iterations, int64_t width, int64_t rows, int64_t segments) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, width}});
  std::vector<Tensor> weights;
  for (const char* name : {"reset", "update", "candidate"})
    weights.push_back(builder.input(name, Role::parameter, {DType::f32, {width, width}}));
  const LoopResult run =
      loop(builder, {x}, {}, {.iterations = iterations, .segments = segments},
           [&](const LoopBody& body) {
             const Tensor h = body.carried[0];
             const Tensor r = sigmoid(linear(h, weights[0])), z = sigmoid(linear(h, weights[1]));
             const Tensor next = (1.0 - z) * tanh(linear(r * h, weights[2])) + z * h;
             const Tensor furthest = reduce_max(abs(stop_gradient(next - h)), {0, 1});
             return IterationResults{.carried = {next}, .stop = less(furthest, 0.0)};  // never
           });
  const Tensor loss = reduce_mean(run.carried[0] * run.carried[0], {0, 1});
  const std::vector<Tensor> gradients = gradient(loss, weights);
  builder.output("loss", loss);
  // A rate so low that all steps do the same work, with numbers of the same size.
  for (size_t i = 0; i < weights.size(); ++i)
    builder.output("weight" + std::to_string(i), weights[i] - 1e-9 * gradients[i],
                   static_cast<int>(1 + i));
  return builder.take();
}

void gated(benchmark::State& state) {
  const Graph graph = step(state.range(0), state.range(1), state.range(2), state.range(3));
  State weights(state_entries(graph), open_device("cpu", kThreads));
  PhiloxStream draws(3);
  const auto normal = [&](int64_t count, double scale) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(scale * draws.normal());
    return values;
  };
  // Large enough that the state does not fade: fading numbers are slow, and not what is to be measured.
  const double scale = 2 / std::sqrt(static_cast<double>(state.range(1)));
  for (const StateEntry& entry : weights.entries())
    weights.write(entry.name, normal(entry.type.elements(), scale));
  Program program = Program::compile(graph, weights, {});
  const std::vector<float> x = normal(state.range(1) * state.range(2), 1);
  const TensorMemory memory = aligned_copy(x);
  const void* const batch[] = {memory.get()};
  for (int i = 0; i < 2; ++i) program.run(batch);
  const float loss = program.read_result<float>(0)[0];
  for (auto _ : state) program.run(batch);
  state.counters["peak_MiB"] = static_cast<double>(program.plan().peak_bytes()) / 0x1p20;
  state.counters["GFLOP"] = program.plan().flops / 1e9;
  state.counters["loss"] = loss;
}

void segments(benchmark::internal::Benchmark* all) {
  for (const int64_t width : {128, 512})
    for (const int64_t segments : {1, 2, 4, 8, 16, 64}) all->Args({64, width, 64, segments});
}

BENCHMARK(gated)->Apply(segments)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fullbore

BENCHMARK_MAIN();
