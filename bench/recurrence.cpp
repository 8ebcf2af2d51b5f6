// What the kernels of recurrences gain over their decompositions, and how near they come to the peak: the
// branches of a language model, RWKV-6 (heads [32,32]) and Mamba-2 (heads [64,64] that share b and
// c). Rows "f32/wkv6 8x256/training/kernel" and ".../decomposition" count the operations of the chunked form,
// chunk (K + V) + 4 K V per token and head forward (half of a chunk's pairs of tokens are seen), and as
// much again and a half with the gradient's own; "peak" is the share of one core's peak. One worker, and
// time is the processor's: other processes disturb it less.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/ops/recurrence.h"
#include "fullbore/ops/recurrent.h"
#include "fullbore/passes/canonicalize/expand_composites.h"
#include "fullbore/runtime/program.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

struct Case {
  DType dtype;
  bool mamba;
  int64_t batch, tokens, chunk;
  bool training;  // with the gradients

  int64_t heads() const { return 4; }
  int64_t width() const { return mamba ? 64 : 32; }
  std::string text() const {
    return fmt::format("{}/{} {}x{} C{}/{}", dtype_name(dtype), mamba ? "ssd" : "wkv6", batch,
                       tokens, chunk, training ? "training" : "forward");
  }
  double flops() const {
    const auto size = static_cast<double>(width());
    const auto reached = static_cast<double>(std::min(chunk, tokens));
    const double pairs = reached * 2 * size, states = 2 * size * size;
    const double forward = pairs + 2 * states;
    const double backward = 2.5 * pairs + 4 * states;
    return static_cast<double>(batch * tokens * heads()) * (forward + (training ? backward : 0));
  }
};

std::vector<Tensor> recur(const Case& c, const std::vector<Tensor>& x) {
  RecurrenceResult made;
  if (c.mamba)
    made = ssd(x[0], x[1], x[2], x[3], x[4], x[5], {.initial = x[6], .chunk = c.chunk});
  else
    made = wkv6(x[0], x[1], x[2], x[3], x[4], {.initial = x[5], .chunk = c.chunk});
  return {made.y, made.state};
}

std::vector<TensorType> operand_types(const Case& c) {
  const int64_t b = c.batch, t = c.tokens, h = c.heads(), w = c.width();
  const TensorType x{c.dtype, {b, t, h, w}}, state{DType::f32, {b, h, w, w}};
  if (!c.mamba) return {x, x, x, {DType::f32, x.shape}, {DType::f32, {h, w}}, state};
  const TensorType shared{c.dtype, {b, t, 1, w}}, per_head{DType::f32, {h}};
  return {x, {DType::f32, {b, t, h}}, per_head, shared, shared, per_head, state};
}

Graph make_graph(const Case& c, bool decomposed) {
  GraphBuilder builder;
  std::vector<Tensor> x;
  for (const TensorType& type : operand_types(c))
    x.push_back(builder.input(fmt::format("x{}", x.size()), Role::batch, type));
  const Tensor dy = builder.input("dy", Role::batch, x[0].type());
  const std::vector<Tensor> made = recur(c, x);
  builder.output("y", made[0]);
  builder.output("state", made[1]);
  if (c.training) {
    const std::vector<Tensor> gradients =
        backward(builder, std::span(made).first(1), std::span(&dy, 1), x);
    for (size_t i = 0; i < gradients.size(); ++i)
      builder.output(fmt::format("gradient{}", i), gradients[i]);
  }
  return decomposed ? expand_composites(builder.graph(), Target{}) : builder.take();
}

const std::shared_ptr<Device>& device() {
  static const std::shared_ptr<Device> instance = open_device("cpu", 1);
  return instance;
}

double peak(DType dtype) {
  static const MachinePeaks peaks = known_machine(*device()).peaks;
  return dtype == DType::bf16 ? peaks.bf16_flops : peaks.fp32_flops;
}

// Log-decays and steps as of models that have just begun; all else normal.
double value_of(const Case& c, size_t operand, double normal) {
  if (!c.mamba) return operand == 3 ? -std::exp(-3 + normal) : normal;
  if (operand == 1) return 0.02 * std::exp(normal);
  return operand == 2 ? -4 * std::exp(0.5 * normal) : normal;
}

void run(benchmark::State& state, const Case& c, bool decomposed) {
  const Graph graph = make_graph(c, decomposed);
  State none(state_entries(graph), device());
  Program program = Program::compile(graph, none);
  std::vector<std::unique_ptr<void, Free>> memory;
  std::vector<const void*> batch;
  PhiloxStream draws(1);
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    memory.emplace_back(std::aligned_alloc(64, static_cast<size_t>(type.bytes() + 64) / 64 * 64));
    for (int64_t i = 0; i < type.elements(); ++i)
      store_element(memory.back().get(), type.dtype, i, value_of(c, batch.size(), draws.normal()));
    batch.push_back(memory.back().get());
  }
  program.run(batch);
  for (auto _ : state) program.run(batch);
  state.counters["flops"] =
      benchmark::Counter(c.flops(), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak"] =
      benchmark::Counter(c.flops() / peak(c.dtype), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["arena"] = static_cast<double>(program.plan().arena_bytes);
}

void register_all() {
  struct Extents {
    int64_t batch, tokens, chunk;
  };
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const bool mamba : {false, true})
      for (const Extents e :
           {Extents{8, 256, 64}, {8, 256, 32}, {64, 64, 64}, {1, 4096, 64}, {1, 1, 64}})
        for (const bool training : {false, true}) {
          if (training && e.tokens == 1) continue;
          const Case c{dtype, mamba, e.batch, e.tokens, e.chunk, training};
          for (const bool decomposed : {false, true})
            benchmark::RegisterBenchmark(
                (c.text() + (decomposed ? "/decomposition" : "/kernel")).c_str(), run, c,
                decomposed)
                ->Unit(benchmark::kMicrosecond);
        }
}

const bool registered = (register_all(), true);

}  // namespace
