/// A matmul and what is behind it, as one kernel and as two (passes/fusion/fuse_epilogues.h), on one thread.
///
///     bench_epilogues [repeats]
///
/// The two programs take turns. Printed are the shortest times, which other jobs on the machine disturb
/// least, and their ratio: above 1, one kernel is faster. All are made one kernel, whatever
/// EpilogueTarget::near_bytes says, for this is what it is chosen by.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/device.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "fullbore/runtime/program.h"

namespace fullbore {
namespace {

using Chain = Tensor (*)(Tensor gemm, Tensor residual, Tensor bias);

Tensor bias_gelu(Tensor gemm, Tensor, Tensor bias) { return gelu(gemm + bias); }
Tensor residual_sum(Tensor gemm, Tensor residual, Tensor) { return gemm + residual; }
Tensor residual_norm(Tensor gemm, Tensor residual, Tensor bias) {
  return layer_norm(gemm + residual, bias, bias);
}

struct Work {
  const char* name;
  Chain chain;
  int64_t rows, columns, depth;
};

const Work kWorks[] = {
    {"bias, gelu", bias_gelu, 256, 256, 64},
    {"bias, gelu", bias_gelu, 768, 512, 128},
    {"bias, gelu", bias_gelu, 2048, 1536, 384},
    {"bias, gelu", bias_gelu, 16384, 1536, 384},
    {"residual", residual_sum, 256, 64, 256},
    {"residual", residual_sum, 2048, 384, 384},
    {"residual", residual_sum, 2048, 384, 1536},
    {"residual", residual_sum, 16384, 384, 1536},
    {"residual, norm", residual_norm, 256, 64, 256},
    {"residual, norm", residual_norm, 768, 128, 512},
    {"residual, norm", residual_norm, 2048, 384, 384},
    {"residual, norm", residual_norm, 2048, 384, 1536},
    {"residual, norm", residual_norm, 16384, 384, 1536},
};

Graph traced(const Work& work) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {work.rows, work.depth}});
  const Tensor weight =
      builder.input("weight", Role::batch, {DType::f32, {work.columns, work.depth}});
  const Tensor residual =
      builder.input("residual", Role::batch, {DType::f32, {work.rows, work.columns}});
  const Tensor bias = builder.input("bias", Role::batch, {DType::f32, {work.columns}});
  builder.output("y", work.chain(linear(x, weight), residual, bias));
  return builder.take();
}

/// A program of the graph as it is.
class Contender {
 public:
  Contender(const Graph& graph, const std::vector<std::vector<float>>& inputs,
            const std::shared_ptr<Device>& device)
      : state_(state_entries(graph), device), program_(compiled(graph, state_)) {
    for (const std::vector<float>& input : inputs) batch_.push_back(input.data());
  }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    program_.run(batch_);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    shortest_ = std::min(shortest_, time.count());
  }
  double shortest_microseconds() const { return shortest_; }

 private:
  static Program compiled(const Graph& graph, State& state) {
    CompileOptions as_is;
    for (const Pass& pass : pipeline())
      if (pass.optional) as_is.passes.disabled.insert(std::string(pass.name));
    return Program::compile(graph, state, as_is);
  }

  State state_;
  Program program_;
  std::vector<const void*> batch_;
  double shortest_ = std::numeric_limits<double>::infinity();
};

void measure(const Work& work, DType precision, int repeats) {
  const std::shared_ptr<Device> device = open_device("cpu", 1);
  Target target = device->target();
  target.precision = precision;
  const Graph apart = run_passes(traced(work), target, {.disabled = {"fuse_epilogues"}});
  target.epilogues.near_bytes = std::numeric_limits<int64_t>::max();
  const Graph together = run_pass("fuse_epilogues", apart, target);
  PhiloxStream draws(5);
  std::vector<std::vector<float>> inputs;
  for (const Graph::Input& input : apart.inputs()) {
    std::vector<float>& values = inputs.emplace_back();
    for (int64_t i = 0; i < apart.type(input.value).elements(); ++i)
      values.push_back(static_cast<float>(draws.normal()));
  }
  Contender two(apart, inputs, device), one(together, inputs, device);
  for (int i = 0; i < repeats; ++i) {
    two.run();
    one.run();
  }
  fmt::print("{:<16}{:>6} x {:<5}depth {:<6}{:<6}{:>12.0f}{:>12.0f}{:>9.3f}\n", work.name,
             work.rows, work.columns, work.depth, dtype_name(precision),
             two.shortest_microseconds(), one.shortest_microseconds(),
             two.shortest_microseconds() / one.shortest_microseconds());
  std::fflush(stdout);
}

}  // namespace
}  // namespace fullbore

int main(int count, char** arguments) {
  const int repeats = count > 1 ? std::atoi(arguments[1]) : 40;
  fmt::print("{:<47}{:>12}{:>12}{:>9}\n", "microseconds, the shortest", "two", "one", "ratio");
  for (const fullbore::DType precision : {fullbore::DType::f32, fullbore::DType::bf16})
    for (const fullbore::Work& work : fullbore::kWorks) fullbore::measure(work, precision, repeats);
}
