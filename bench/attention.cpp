// What the tiled kernels of attention gain over its decomposition into matmuls and a softmax. Rows
// "f32/T256 D64 causal/training/kernel" and ".../decomposition", "packed" where heads lie as projections
// make them, count the operations of what a causal mask leaves, 4 D per pair forward and 14 D with the gradients of q, k and v; "peak" is the share of
// one core's peak in that dtype. One worker, and time is the processor's: other processes disturb it
// less, and both contenders share their work out in the same way.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/ops/attention.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/packed_attention.h"
#include "fullbore/passes/canonicalize/expand_composites.h"
#include "fullbore/runtime/program.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

struct Case {
  DType dtype;
  int64_t batch, heads, length, width;
  double dropout;
  bool training;  // with the gradients
  bool packed;    // heads of one tensor, positions first

  std::string text() const {
    return fmt::format("{}/T{} D{}{}{}/{}", dtype_name(dtype), length, width,
                       packed ? " packed" : "", dropout > 0 ? " dropout" : "",
                       training ? "training" : "forward");
  }
};

// Of operands and, where there is dropout, its seed and step behind dy.
Tensor attend(const Case& c, const std::vector<Tensor>& x) {
  AttentionOptions options{.causal = true, .dropout = c.dropout};
  const size_t dy = c.packed ? 1 : 3;
  if (c.dropout > 0) options.random = {.seed = x[dy + 1], .step = x[dy + 2], .site = 1};
  return c.packed ? packed_attention(x[0], c.heads, options) : attention(x[0], x[1], x[2], options);
}

// Attention as one node, or as the nodes of its decomposition.
Tensor attend(GraphBuilder& builder, const Case& c, const std::vector<Tensor>& x, bool decomposed) {
  if (!decomposed) return attend(c, x);
  GraphBuilder inner;
  std::vector<Tensor> inputs;
  for (const Tensor& tensor : x)
    inputs.push_back(inner.input(fmt::format("x{}", inputs.size()), Role::batch, tensor.type()));
  inner.output("y", attend(c, inputs));
  return inline_graph(builder, expand_composites(inner.graph(), Target{}), x)[0];
}

Graph make_graph(const Case& c, bool decomposed) {
  GraphBuilder builder;
  const TensorType type{c.dtype, {c.batch, c.heads, c.length, c.width}};
  std::vector<Tensor> x;
  if (c.packed) {
    x = {builder.input("qkv", Role::batch, {c.dtype, {c.batch, c.length, 3 * c.heads, c.width}}),
         builder.input("dy", Role::batch, {c.dtype, {c.batch, c.length, c.heads, c.width}})};
  } else {
    for (const char* name : {"q", "k", "v", "dy"})
      x.push_back(builder.input(name, Role::batch, type));
  }
  if (c.dropout > 0)
    for (const char* name : {"seed", "step"})
      x.push_back(builder.input(name, Role::batch, {DType::i64, {}}));
  const Tensor y = attend(builder, c, x, decomposed);
  builder.output("y", y);
  if (c.training) {
    const size_t operands = c.packed ? 1 : 3;
    const std::vector<Tensor> gradients = backward(
        builder, std::span(&y, 1), std::span(&x[operands], 1), std::span(x).first(operands));
    for (size_t i = 0; i < gradients.size(); ++i)
      builder.output(fmt::format("gradient{}", i), gradients[i]);
  }
  return builder.take();
}

const std::shared_ptr<Device>& device() {
  static const std::shared_ptr<Device> instance = open_device("cpu", 1);
  return instance;
}

double peak(DType dtype) {
  static const MachinePeaks peaks = known_machine(*device()).peaks;
  return dtype == DType::bf16 ? peaks.bf16_flops : peaks.fp32_flops;
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
      store_element(memory.back().get(), type.dtype, i,
                    is_floating(type.dtype) ? draws.normal() : 7);
    batch.push_back(memory.back().get());
  }
  program.run(batch);
  for (auto _ : state) program.run(batch);
  const double pairs = static_cast<double>(c.batch * c.heads) *
                       (static_cast<double>(c.length) * static_cast<double>(c.length + 1) / 2);
  const double flops = pairs * (c.training ? 14 : 4) * static_cast<double>(c.width);
  state.counters["flops"] =
      benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak"] =
      benchmark::Counter(flops / peak(c.dtype), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["arena"] = static_cast<double>(program.plan().arena_bytes);
}

// About as many pairs in every case.
void register_all() {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const int64_t length : {64, 256, 1024})
      for (const int64_t width : {32, 64, 128})
        for (const double dropout : {0.0, 0.1})
          for (const bool training : {false, true})
            for (const bool packed : {false, true}) {
              if (dropout > 0 && (length != 256 || width != 64)) continue;
              const int64_t batch = std::max<int64_t>(2, 65536 / length / length);
              const Case c{dtype, batch, 4, length, width, dropout, training, packed};
              for (const bool decomposed : {false, true})
                benchmark::RegisterBenchmark(
                    (c.text() + (decomposed ? "/decomposition" : "/kernel")).c_str(), run, c,
                    decomposed)
                    ->Unit(benchmark::kMicrosecond);
            }
}

const bool registered = (register_all(), true);

}  // namespace
