/// A lattice-like step of training: a loop that ends by itself after T* of 64 iterations, in each of which networks run on
/// the first n of C rows (ops/map_rows.h), and its gradient.
///
///     bench_live_rows --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
///
/// `lattice/T*/n`: T* and n are data, one program serves all. Two threads.
#include <benchmark/benchmark.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/aligned_copy.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/map_rows.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

constexpr int64_t kCapacity = 4096;
constexpr int64_t kWidth = 64;
constexpr int64_t kTile = 128;

Graph step() {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kCapacity, kWidth}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor steps = builder.input("steps", Role::batch, {DType::i64, {}});
  std::vector<Tensor> weights;
  for (const char* name : {"up", "gate"})
    weights.push_back(builder.input(name, Role::parameter, {DType::f32, {kWidth, 4 * kWidth}}));
  weights.push_back(builder.input("down", Role::parameter, {DType::f32, {4 * kWidth, kWidth}}));
  const LoopResult run = loop(builder, {x}, {}, {.iterations = 64}, [&](const LoopBody& body) {
    const std::vector<Tensor> next =
        map_rows(count, kTile, {body.carried[0]}, [&](const std::vector<Tensor>& tile) {
          const Tensor hidden = silu(matmul(tile[0], weights[0])) * matmul(tile[0], weights[1]);
          return std::vector<Tensor>{tanh(tile[0] + matmul(hidden, weights[2]))};
        });
    return IterationResults{.carried = next, .stop = greater_equal(body.index + 1.0, steps)};
  });
  const Tensor loss = reduce_mean(run.carried[0] * run.carried[0], {0, 1});
  const std::vector<Tensor> gradients = gradient(loss, weights);
  builder.output("loss", loss);
  for (size_t i = 0; i < weights.size(); ++i)
    builder.output("weight" + std::to_string(i), weights[i] - 1e-9 * gradients[i],
                   static_cast<int>(3 + i));
  return builder.take();
}

void lattice(benchmark::State& state) {
  const Graph graph = step();
  State weights(state_entries(graph), open_device("cpu", 2));
  PhiloxStream draws(3);
  const auto normal = [&](int64_t count, double scale) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(scale * draws.normal());
    return values;
  };
  for (const StateEntry& entry : weights.entries())
    weights.write(entry.name, normal(entry.type.elements(), 0.1));
  Program program = Program::compile(graph, weights, {});
  const std::vector<float> x = normal(kCapacity * kWidth, 1);
  alignas(64) const int64_t steps = state.range(0);
  alignas(64) const int64_t count = state.range(1);
  const TensorMemory memory = aligned_copy(x);
  const void* const batch[] = {memory.get(), &count, &steps};
  for (int i = 0; i < 2; ++i) program.run(batch);
  for (auto _ : state) program.run(batch);
}

BENCHMARK(lattice)
    ->Args({10, 4096})
    ->Args({20, 4096})
    ->Args({10, 2048})
    ->Args({10, 1024})
    ->Args({10, 409})
    ->Args({20, 409})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace fullbore

BENCHMARK_MAIN();
