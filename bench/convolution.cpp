/// Convolutions of networks for images, forward and both gradients: rows "forward/f32/8x3x224x224,64x3x7x7/stride:2". The
/// counter `flops` is 2 N O P K C a second, of multiplications with padding too, so that rows are compared by it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/convolution.h"
#include "fullbore/runtime/program.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

enum class Result : uint8_t { forward, input_gradient, weight_gradient };
constexpr std::pair<Result, const char*> kResults[] = {
    {Result::forward, "forward"},
    {Result::input_gradient, "input_gradient"},
    {Result::weight_gradient, "weight_gradient"}};

/// With as much padding as keeps the extents, but for the stride.
struct Layer {
  std::vector<int64_t> x;       ///< [N,C,*S]
  std::vector<int64_t> weight;  ///< [O,C,*K]
  int64_t stride = 1;

  std::vector<int64_t> y() const {
    std::vector<int64_t> extents = {x[0], weight[0]};
    for (size_t axis = 2; axis < x.size(); ++axis) extents.push_back((x[axis] - 1) / stride + 1);
    return extents;
  }
  double flops() const {
    return 2.0 * static_cast<double>(Shape(y()).elements() * Shape(weight).elements() / weight[0]);
  }
};

// The usual ones, without strides and with many channels; then first layers and strided ones.
const Layer kLayers[] = {
    {{8, 64, 56, 56}, {64, 64, 3, 3}, 1},       {{8, 256, 14, 14}, {256, 256, 3, 3}, 1},
    {{8, 512, 7, 7}, {512, 512, 3, 3}, 1},      {{8, 64, 56, 56}, {128, 64, 3, 3}, 2},
    {{8, 64, 56, 56}, {128, 64, 1, 1}, 2},      {{8, 3, 224, 224}, {64, 3, 7, 7}, 2},
    {{64, 3, 32, 32}, {32, 3, 3, 3}, 1},        {{64, 1, 28, 28}, {32, 1, 5, 5}, 1},
    {{64, 1, 28, 28}, {32, 1, 5, 5}, 2},        {{2, 16, 16, 32, 32}, {32, 16, 3, 3, 3}, 1},
    {{2, 16, 16, 32, 32}, {32, 16, 3, 3, 3}, 2}};

Graph graph_of(const Layer& layer, Result result, DType dtype) {
  GraphBuilder builder("bench");
  const Tensor x = builder.input("x", Role::batch, {dtype, Shape(layer.x)});
  const Tensor weight = builder.input("weight", Role::batch, {dtype, Shape(layer.weight)});
  const Tensor y =
      convolution(x, weight, {}, {.stride = layer.stride, .padding = layer.weight.back() / 2});
  if (result == Result::forward) {
    builder.output("y", y);
    return builder.take();
  }
  const Tensor dy = builder.input("dy", Role::batch, {dtype, Shape(layer.y())});
  std::vector<int64_t> axes;
  for (int axis = 0; axis < y.rank(); ++axis) axes.push_back(axis);
  const Tensor wanted[] = {result == Result::input_gradient ? x : weight};
  builder.output("dx", gradient(reduce_sum(y * dy, axes), wanted)[0]);
  return builder.take();
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory drawn(const TensorType& type, uint64_t stream) {
  Memory memory(std::aligned_alloc(64, (static_cast<size_t>(type.bytes()) + 127) / 64 * 64));
  PhiloxStream draws(1, stream);
  for (int64_t i = 0; i < type.elements(); ++i)
    store_element(memory.get(), type.dtype, i, draws.normal());
  return memory;
}

void run(benchmark::State& bench, const Layer& layer, Result result, DType dtype, int workers) {
  State none({}, open_device("cpu", workers));
  const Graph graph = graph_of(layer, result, dtype);
  std::vector<Memory> memory;
  std::vector<const void*> batch;
  for (const Graph::Input& input : graph.inputs()) {
    memory.push_back(drawn(graph.type(input.value), memory.size()));
    batch.push_back(memory.back().get());
  }
  Program program = Program::compile(graph, none);
  for (auto unused : bench) program.run(batch);
  bench.counters["flops"] =
      benchmark::Counter(layer.flops(), benchmark::Counter::kIsIterationInvariantRate);
}

[[maybe_unused]] const bool registered = [] {
  const int all = static_cast<int>(std::thread::hardware_concurrency());
  for (const auto& [result, name] : kResults)
    for (const DType dtype : {DType::f32, DType::bf16})
      for (const Layer& layer : kLayers)
        benchmark::RegisterBenchmark(
            fmt::format("{}/{}/{},{}/stride:{}", name, dtype_name(dtype), fmt::join(layer.x, "x"),
                        fmt::join(layer.weight, "x"), layer.stride)
                .c_str(),
            [=](benchmark::State& bench) { run(bench, layer, result, dtype, all); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
  return true;
}();

}  // namespace
