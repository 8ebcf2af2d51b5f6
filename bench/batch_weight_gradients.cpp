/// Training steps that use a matrix many times, with and without the pass `batch_weight_gradients`.
///
///     bench_batch_weight_gradients --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true
///
/// `loop/evaluations/width/rows/gathered`: as many evaluations, one after another, of one residual block
/// of two layers (width to four widths and back) on `rows` rows, written as a loop, with the gradients
/// of its weights. `unrolled/...`: written one by one. `recurrence/...`: one matrix of width by width.
/// The last argument switches the pass. One thread; compare CPU times where the machine is shared. Counters:
/// the plan's peak, and the loss.
#include <benchmark/benchmark.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/aligned_copy.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

constexpr int kThreads = 1;

/// Of h, the input x of all evaluations, and the weights.
using Evaluation = Tensor (*)(Tensor h, Tensor x, const std::vector<Tensor>& weights);

Tensor block(Tensor h, Tensor, const std::vector<Tensor>& weights) {
  return h + linear(gelu(linear(h, weights[0])), weights[1]);
}
Tensor cell(Tensor h, Tensor x, const std::vector<Tensor>& weights) {
  return tanh(linear(h, weights[0]) + x);
}

Graph step(Evaluation evaluate, const std::vector<Shape>& shapes, bool unrolled,
           int64_t evaluations, int64_t width, int64_t rows) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, width}});
  std::vector<Tensor> weights;
  for (const Shape& shape : shapes)
    weights.push_back(builder.input("weight" + std::to_string(weights.size()), Role::parameter,
                                    {DType::f32, shape}));
  Tensor h = x;
  if (unrolled)
    for (int64_t i = 0; i < evaluations; ++i) h = evaluate(h, x, weights);
  else
    h = loop(builder, {x}, {}, {.iterations = evaluations}, [&](const LoopBody& body) {
          return IterationResults{.carried = {evaluate(body.carried[0], x, weights)}};
        }).carried[0];
  const Tensor loss = reduce_mean(h * h, {0, 1});
  const std::vector<Tensor> gradients = gradient(loss, weights);
  builder.output("loss", loss);
  // A rate so low that all steps do the same work, with numbers of the same size.
  for (size_t i = 0; i < weights.size(); ++i)
    builder.output("weight" + std::to_string(i), weights[i] - 1e-9 * gradients[i],
                   static_cast<int>(1 + i));
  return builder.take();
}

void run(benchmark::State& state, const Graph& graph) {
  CompileOptions options;
  if (state.range(3) == 0) options.passes.disabled.insert("batch_weight_gradients");
  State weights(state_entries(graph), open_device("cpu", kThreads));
  PhiloxStream draws(3);
  for (const StateEntry& entry : weights.entries())
    weights.write(entry.name, [&] {
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      for (float& value : values) value = static_cast<float>(0.02 * draws.normal());
      return values;
    }());
  Program program = Program::compile(graph, weights, options);
  std::vector<float> x(static_cast<size_t>(graph.type(graph.inputs()[0].value).elements()));
  for (float& value : x) value = static_cast<float>(draws.normal());
  const TensorMemory memory = aligned_copy(x);
  const void* const batch[] = {memory.get()};
  for (int i = 0; i < 2; ++i) program.run(batch);
  const float loss = program.read_result<float>(0)[0];
  for (auto _ : state) program.run(batch);
  state.counters["peak_MiB"] = static_cast<double>(program.plan().peak_bytes()) / 0x1p20;
  state.counters["loss"] = loss;  // of the second step, by when the first one's gradients count
}

void loop_of_blocks(benchmark::State& state) {
  const int64_t width = state.range(1);
  run(state, step(block, {{4 * width, width}, {width, 4 * width}}, false, state.range(0), width,
                  state.range(2)));
}
void unrolled_blocks(benchmark::State& state) {
  const int64_t width = state.range(1);
  run(state, step(block, {{4 * width, width}, {width, 4 * width}}, true, state.range(0), width,
                  state.range(2)));
}
void recurrence(benchmark::State& state) {
  const int64_t width = state.range(1);
  run(state, step(cell, {{width, width}}, false, state.range(0), width, state.range(2)));
}

void with_and_without(benchmark::internal::Benchmark* each, int64_t evaluations, int64_t width,
                      const std::vector<int64_t>& all_rows) {
  for (const int64_t rows : all_rows)
    for (const int64_t gathered : {0, 1}) each->Args({evaluations, width, rows, gathered});
}

BENCHMARK(loop_of_blocks)
    ->Name("loop")
    ->Apply([](auto* each) {
      with_and_without(each, 40, 192, {1, 4, 16, 32, 64, 128, 256, 2048});
    }) -> Unit(benchmark::kMillisecond) -> UseRealTime();
BENCHMARK(unrolled_blocks)
    ->Name("unrolled")
    ->Apply([](auto* each) {
      with_and_without(each, 40, 192, {1, 4, 16, 32, 64, 128, 256});
    }) -> Unit(benchmark::kMillisecond) -> UseRealTime();
BENCHMARK(recurrence)
    ->Apply([](auto* each) {
      with_and_without(each, 64, 256, {1, 8, 32, 64, 128});
      with_and_without(each, 64, 768, {1, 8, 32, 128, 256});
    }) -> Unit(benchmark::kMillisecond) -> UseRealTime();

}  // namespace
}  // namespace fullbore

BENCHMARK_MAIN();
