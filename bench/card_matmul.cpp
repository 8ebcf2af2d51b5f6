/// Products of models' shapes on an NVIDIA card: by our own kernels, and by cuBLASLt where it is found.
///
///     bench_card_matmul [rounds] [small]
///
/// Each way is a graph of the same product, one after another, and the two take turns; a round is at least 5 ms of either.
/// Printed is a line of JSON for each shape: microseconds a product, the median over the rounds, and TFLOP/s; "library" is null
/// where cuBLASLt is not found or has no algorithm, which "notices" say. `small`: shapes that the tests' driver gets through.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/device/device.h"
#include "fullbore/device/recorder.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compile.h"

namespace fullbore {
namespace {

using Clock = std::chrono::steady_clock;

/// y [batches, m, n] of operands of `dtype`; transposed as ops/matmul.cpp has it. `wide`: y is f32.
struct Product {
  const char* name;
  DType dtype;
  int64_t batches, m, n, k;
  bool transpose_a, transpose_b, wide;
};

// Linear layers of a transformer of 124 M parameters at 16 x 1024, of one of 10.7 M at 64 x 256, and of one that is 128 wide at
// 8 x 256: forward, their inputs' and their weights' gradients; heads; products by head.
const Product kShapes[] = {
    {"124M qkv", DType::bf16, 1, 16384, 2304, 768, false, true, false},
    {"124M qkv dx", DType::bf16, 1, 16384, 768, 2304, false, false, false},
    {"124M qkv dw", DType::bf16, 1, 2304, 768, 16384, true, false, true},
    {"124M projection", DType::bf16, 1, 16384, 768, 768, false, true, false},
    {"124M mlp in", DType::bf16, 1, 16384, 3072, 768, false, true, false},
    {"124M mlp out", DType::bf16, 1, 16384, 768, 3072, false, true, false},
    {"124M mlp dw", DType::bf16, 1, 3072, 768, 16384, true, false, true},
    {"124M head", DType::bf16, 1, 4096, 50304, 768, false, true, false},
    {"10.7M mlp in", DType::bf16, 1, 16384, 1536, 384, false, true, false},
    {"10.7M mlp dw", DType::bf16, 1, 1536, 384, 16384, true, false, true},
    {"width 128 mlp in", DType::bf16, 1, 2048, 512, 128, false, true, false},
    {"width 128 mlp dw", DType::bf16, 1, 512, 128, 2048, true, false, true},
    {"by head", DType::bf16, 192, 1024, 64, 1024, false, false, false},
    {"square", DType::bf16, 1, 8192, 8192, 8192, false, true, false},
    {"square f16", DType::f16, 1, 8192, 8192, 8192, false, true, false},
    {"square f32", DType::f32, 1, 2048, 2048, 2048, false, true, false},
    {"not aligned", DType::bf16, 1, 16384, 771, 769, false, true, false},
};
const Product kSmallShapes[] = {
    {"small", DType::bf16, 1, 32, 24, 16, false, true, false},
    {"small dw", DType::bf16, 2, 16, 24, 32, true, false, true},
    {"small f32", DType::f32, 1, 16, 8, 8, false, true, false},
};

Shape shape_of(int64_t batches, int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{batches, columns, rows} : Shape{batches, rows, columns};
}

Graph graph_of(const Product& of) {
  GraphBuilder builder("product");
  const Tensor a =
      builder.input("a", Role::batch, {of.dtype, shape_of(of.batches, of.m, of.k, of.transpose_a)});
  const Tensor b =
      builder.input("b", Role::batch, {of.dtype, shape_of(of.batches, of.k, of.n, of.transpose_b)});
  MatmulOptions options{.transpose_a = of.transpose_a, .transpose_b = of.transpose_b};
  if (of.wide) options.out_dtype = DType::f32;
  builder.output("y", matmul(a, b, options));
  return builder.take();
}

/// A graph of the same product, `times` of it.
class Way {
 public:
  Way(Device& device, const Graph& graph, bool library, int times)
      : compiler_(device.compiler()), times_(times) {
    compiler_->compile_for(compile_target(device, {.cublaslt = library}));
    const Node& node = graph.nodes().front();
    kernel_ = compiler_->compile(graph, node, 1);
    compiler_->finish();
    notices_ = compiler_->notices();
    std::vector<LaunchOperand> operands;
    const auto add = [&](int64_t bytes) {
      memory_.push_back(device.allocate(bytes));
      operands.push_back({.base = memory_.back()->address()});
    };
    for (const Value input : node.inputs) add(graph.type(input).bytes());
    for (const Value output : node.outputs) add(graph.type(output).bytes());
    if (const int64_t scratch = kernel_->scratch_bytes(1); scratch > 0) add(scratch);
    fill(device, graph, node);
    const std::unique_ptr<Recorder> recorder = device.record();
    for (int id = 0; id < times; ++id) recorder->launch(id, *kernel_, operands, true);
    program_ = recorder->finish();
  }

  /// Of one product.
  double seconds() {
    const auto begin = Clock::now();
    program_->run();
    program_->wait();
    return std::chrono::duration<double>(Clock::now() - begin).count() / times_;
  }
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  // Zeros take a card less power than numbers do.
  void fill(Device& device, const Graph& graph, const Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const TensorType& type = graph.type(node.inputs[i]);
      std::vector<std::byte> bytes(static_cast<size_t>(type.bytes()));
      constexpr int64_t kPeriod = 65521;
      for (int64_t element = 0; element < std::min(kPeriod, type.elements()); ++element)
        store_element(bytes.data(), type.dtype, element,
                      std::sin(static_cast<double>(element) + static_cast<double>(i)));
      const size_t period = static_cast<size_t>(kPeriod * dtype_bytes(type.dtype));
      for (size_t filled = period; filled < bytes.size(); filled += period)
        std::copy_n(bytes.begin(), std::min(period, bytes.size() - filled),
                    bytes.begin() + static_cast<std::ptrdiff_t>(filled));
      device.write(memory_[i]->address(), bytes);
    }
  }

  std::unique_ptr<Compiler> compiler_;
  int times_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::string> notices_;
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::unique_ptr<Replayable> program_;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// As many products as take 5 ms.
int times_for(double seconds) {
  return static_cast<int>(std::clamp(5e-3 / std::max(seconds, 1e-7), 1.0, 2000.0));
}

nlohmann::ordered_json measured(Device& device, const Product& of, int rounds) {
  const Graph graph = graph_of(of);
  std::unique_ptr<Way> ways[2];
  for (const bool library : {false, true}) {
    Way trial(device, graph, library, 1);
    trial.seconds();
    ways[library] = std::make_unique<Way>(device, graph, library, times_for(trial.seconds()));
    ways[library]->seconds();
  }
  const bool has_library = ways[1]->notices().empty();
  std::vector<double> seconds[2];
  for (int round = 0; round < rounds; ++round)
    for (const size_t way : {size_t{0}, size_t{1}})
      if (way == 0 || has_library) seconds[way].push_back(ways[way]->seconds());
  const double flops = 2.0 * static_cast<double>(of.batches) * static_cast<double>(of.m) *
                       static_cast<double>(of.n) * static_cast<double>(of.k);
  const auto row = [&](const std::vector<double>& times) -> nlohmann::ordered_json {
    if (times.empty()) return nullptr;
    return {{"microseconds", 1e6 * median(times)}, {"tflops", flops / median(times) / 1e12}};
  };
  nlohmann::ordered_json line = {
      {"name", of.name},
      {"product", fmt::format("{} {}x{}x{}x{} {}{}{}", dtype_name(of.dtype), of.batches, of.m, of.n,
                              of.k, of.transpose_a ? "T" : "N", of.transpose_b ? "T" : "N",
                              of.wide ? " to f32" : "")},
      {"own", row(seconds[0])},
      {"library", row(seconds[1])},
      {"notices", ways[1]->notices()}};
  if (has_library) line["own_of_library"] = median(seconds[1]) / median(seconds[0]);
  return line;
}

int run(int argc, char** argv) {
  int rounds = 11;
  bool small = false;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "small")
      small = true;
    else
      rounds = std::max(1, std::atoi(argv[i]));
  const std::shared_ptr<Device> device = open_device("cuda");
  fmt::print("{}\n", nlohmann::ordered_json{{"card", device->facts().hardware}}.dump());
  const auto print = [&](const Product& of) {
    fmt::print("{}\n", measured(*device, of, rounds).dump());
    std::fflush(stdout);
  };
  if (small)
    for (const Product& of : kSmallShapes) print(of);
  else
    for (const Product& of : kShapes) print(of);
  return 0;
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  try {
    return fullbore::run(argc, argv);
  } catch (const fullbore::Error& error) {
    fmt::print(stderr, "bench_card_matmul: {}\n", error.what());
    return static_cast<int>(error.code());
  }
}
