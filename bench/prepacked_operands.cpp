/// Matrices packed apart from the matmuls that read them (passes/gemm/prepack_operands.h), on one thread.
///
///     bench_prepacked_operands [repeats [matmuls|steps]]
///
/// `matmuls`: one matmul as its kernel packs it now (or reads the matrix where it lies), by a prepacked operand that is
/// there already, and what prepacking takes: PackingTarget of the CPU is chosen by this. `steps`: loops
/// with few rows, forward and with gradients, as the pass leaves them and without it. Contenders take turns;
/// printed are the shortest times in microseconds, which other jobs on the machine disturb least, and ratios:
/// above 1, prepacking is faster.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <string_view>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/cpu/kernel_list.h"
#include "fullbore/device/cpu/kernels/elements.h"
#include "fullbore/device/registry.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

constexpr DType kDtypes[] = {DType::f32, DType::bf16, DType::f16};

// Of the processor, which other jobs on the machine disturb less than the clock's.
template <class Run>
double microseconds(const Run& run) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  run();
  return now() - start;
}

// --- matmuls ----------------------------------------------------------------------------------------

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(int64_t bytes) {
  return Memory(std::aligned_alloc(64, static_cast<size_t>(cpu::round_up(bytes + 64, 64))));
}

Memory random_matrix(const TensorType& type, uint64_t seed) {
  Memory memory = allocate(type.bytes());
  PhiloxStream draws(seed);
  for (int64_t i = 0; i < type.elements(); ++i)
    store_element(memory.get(), type.dtype, i, draws.uniform(-1, 1));
  return memory;
}

struct Matmul {
  DType dtype;
  int64_t rows, columns, depth;
  bool transposed;
};

// The matmul, the prepacking, the prepacked matmul.
Graph three_nodes(const Matmul& p, const PackingTarget::Layout& layout) {
  GraphBuilder builder;
  const Shape b = p.transposed ? Shape{p.columns, p.depth} : Shape{p.depth, p.columns};
  const Tensor x = builder.input("x", Role::batch, {p.dtype, {p.rows, p.depth}});
  const Tensor w = builder.input("w", Role::batch, {p.dtype, b});
  builder.output("y", matmul(x, w, {.transpose_b = p.transposed}));
  const Tensor packed = builder.emit_one("prepack", {w},
                                         {{"transposed", p.transposed},
                                          {"block", std::min(p.columns, layout.columns)},
                                          {"vnni", layout.vnni}},
                                         {});
  builder.output(
      "z", builder.emit_one("prepacked_matmul", {x, packed},
                            {{"transpose_a", false}, {"columns", p.columns}, {"wide", false}}, {}));
  return builder.take();
}

std::unique_ptr<Kernel> kernel_of(const Graph& graph, const Node& node) {
  KernelRequest request(graph, node, 1);
  for (const cpu::ListedKernel& maker : cpu::kernel_list())
    if (maker.op == node.op)
      if (auto kernel = maker.make(request)) return kernel;
  return nullptr;
}

void measure(const Matmul& p, const PackingTarget::Layout& layout, int repeats) {
  const Graph graph = three_nodes(p, layout);
  const auto type = [&](size_t node) { return graph.type(graph.nodes()[node].outputs[0]); };
  const Memory x = random_matrix(graph.type(graph.inputs()[0].value), 1);
  const Memory w = random_matrix(graph.type(graph.inputs()[1].value), 2);
  const Memory y = allocate(type(0).bytes()), packed = allocate(type(1).bytes()),
               z = allocate(type(2).bytes());
  const void* const operands[3][2] = {
      {x.get(), w.get()}, {w.get(), nullptr}, {x.get(), packed.get()}};
  void* const results[3] = {y.get(), packed.get(), z.get()};
  double shortest[3];
  std::unique_ptr<Kernel> kernels[3];
  Memory scratch[3];
  for (size_t i = 0; i < 3; ++i) {
    shortest[i] = std::numeric_limits<double>::infinity();
    kernels[i] = kernel_of(graph, graph.nodes()[i]);
    scratch[i] = allocate(kernels[i]->scratch_bytes(1));
  }
  for (int repeat = 0; repeat < repeats; ++repeat)
    for (size_t i = 0; i < 3; ++i) {
      std::vector<void*> buffers;
      for (const void* operand : operands[i])
        if (operand) buffers.push_back(const_cast<void*>(operand));
      buffers.push_back(results[i]);
      buffers.push_back(scratch[i].get());
      const auto& kernel = dynamic_cast<const CpuKernel&>(*kernels[i]);
      shortest[i] = std::min(
          shortest[i], microseconds([&] { kernel.run(buffers.data(), 0, kernel.items(), 0); }));
    }
  const auto name = fmt::format("{} {}x{} {}", dtype_name(p.dtype), p.depth, p.columns,
                                p.transposed ? "transposed" : "as it lies");
  fmt::print("{:<26}{:>6}{:>10.1f}{:>10.1f}{:>10.1f}{:>8.2f}\n", name, p.rows, shortest[0],
             shortest[2], shortest[1], shortest[0] / shortest[2]);
  std::fflush(stdout);
}

void measure_matmuls(int repeats) {
  fmt::print("{:<26}{:>6}{:>10}{:>10}{:>10}{:>8}\n", "matmul", "rows", "now", "packed", "packing",
             "ratio");
  const PackingTarget target = open_device("cpu", 1)->target().packing;
  for (const DType dtype : kDtypes) {
    const auto layout = target.layouts.find(dtype);
    if (layout == target.layouts.end()) continue;
    for (const auto& [depth, columns] : {std::pair<int64_t, int64_t>{256, 256}, {768, 768}})
      for (const bool transposed : {true, false})
        for (const int64_t rows : {1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1600})
          measure({dtype, rows, columns, depth, transposed}, layout->second, repeats);
  }
}

// --- steps -------------------------------------------------------------------------------------------

/// Iterations of a residual block (width, four widths, width) or of a recurrence (one matrix).
struct TrainedCase {
  const char* name;
  bool block;
  int64_t iterations, width;
};

Graph traced(const TrainedCase& step, int64_t rows, bool training) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {rows, step.width}});
  std::vector<Tensor> weights;
  const auto weight = [&](int64_t to, int64_t from) {
    weights.push_back(builder.input(fmt::format("w{}", weights.size()), Role::parameter,
                                    {DType::f32, {to, from}}));
  };
  weight(step.block ? 4 * step.width : step.width, step.width);
  if (step.block) weight(step.width, 4 * step.width);
  const auto evaluate = [&](Tensor h) {
    return step.block ? h + linear(gelu(linear(h, weights[0])), weights[1])
                      : tanh(linear(h, weights[0]) + x);
  };
  const Tensor h =
      loop(builder, {x}, {}, {.iterations = step.iterations}, [&](const LoopBody& body) {
        return IterationResults{.carried = {evaluate(body.carried[0])}};
      }).carried[0];
  const Tensor loss = reduce_mean(h * h, {0, 1});
  builder.output("loss", loss);
  if (!training) return builder.take();
  const std::vector<Tensor> gradients = gradient(loss, weights);
  for (size_t i = 0; i < weights.size(); ++i)
    builder.output(fmt::format("w{}", i), weights[i] - 1e-9 * gradients[i],
                   static_cast<int>(1 + i));
  return builder.take();
}

class Contender {
 public:
  Contender(const Graph& graph, DType precision, bool packed, const std::shared_ptr<Device>& device)
      : state_(state_entries(graph), device), program_(compiled(graph, precision, packed, state_)) {
    PhiloxStream draws(3);
    for (const StateEntry& entry : state_.entries()) {
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      for (float& value : values) value = static_cast<float>(0.02 * draws.normal());
      state_.write(entry.name, values);
    }
    x_.resize(static_cast<size_t>(graph.type(graph.inputs()[0].value).elements()));
    for (float& value : x_) value = static_cast<float>(draws.normal());
    run();
  }
  void run() {
    const void* const batch[] = {x_.data()};
    const double time = microseconds([&] { program_.run(batch); });
    shortest_ = std::min(shortest_, time);
  }
  double shortest() const { return shortest_; }
  float loss() const { return program_.read_result<float>(0)[0]; }
  double peak_mebibytes() const {
    return static_cast<double>(program_.plan().peak_bytes()) / 0x1p20;
  }

 private:
  static Program compiled(const Graph& graph, DType precision, bool packed, State& state) {
    CompileOptions options{.precision = precision};
    if (!packed) options.passes.disabled.insert("prepack_operands");
    return Program::compile(graph, state, options);
  }

  State state_;
  Program program_;
  std::vector<float> x_;
  double shortest_ = std::numeric_limits<double>::infinity();
};

void measure_steps(int repeats) {
  fmt::print("{:<34}{:>6}{:>12}{:>12}{:>8}{:>18}  losses\n", "step", "rows", "without", "with",
             "ratio", "peak, MiB");
  const std::shared_ptr<Device> device = open_device("cpu", 1);
  for (const DType precision : kDtypes)
    for (const TrainedCase& step : {TrainedCase{"recurrence 64 x 256", false, 64, 256},
                                    {"recurrence 64 x 768", false, 64, 768},
                                    {"recursion 40 x 192", true, 40, 192}})
      for (const bool training : {false, true})
        for (const int64_t rows : {1, 4, 8, 16, 32, 64, 128}) {
          const Graph graph = traced(step, rows, training);
          Contender without(graph, precision, false, device), with(graph, precision, true, device);
          for (int i = 0; i < std::max<int64_t>(5, repeats / (1 + rows / 8)); ++i) {
            without.run();
            with.run();
          }
          fmt::print("{:<34}{:>6}{:>12.0f}{:>12.0f}{:>8.2f}{:>9.2f}{:>9.2f}  {} {}\n",
                     fmt::format("{} {} {}", dtype_name(precision), step.name,
                                 training ? "training" : "forward"),
                     rows, without.shortest(), with.shortest(),
                     without.shortest() / with.shortest(), without.peak_mebibytes(),
                     with.peak_mebibytes(), without.loss(), with.loss());
          std::fflush(stdout);
        }
}

}  // namespace
}  // namespace fullbore

int main(int count, char** arguments) {
  const int repeats = count > 1 ? std::atoi(arguments[1]) : 100;
  const std::string_view part = count > 2 ? arguments[2] : "";
  if (part != "steps") fullbore::measure_matmuls(repeats);
  if (part != "matmuls") fullbore::measure_steps(repeats);
}
