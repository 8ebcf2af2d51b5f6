// Matmuls of layers and heads on all of this machine's threads, by each kernel that there is for them. Rows
// "bf16/768x512x128 NT/amx", "/vnni" and "/tiled" report operations per second; "NT" says that b is transposed.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/cpu/gemm/amx_tiled_matmul.h"
#include "fullbore/device/cpu/gemm/tiled_matmul.h"
#include "fullbore/device/cpu/kernels/elements.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header
using cpu::Contraction;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory allocate(int64_t bytes) {
  return Memory(std::aligned_alloc(64, static_cast<size_t>(cpu::round_up(bytes + 1, 64))));
}

Memory random_matrix(int64_t elements, DType dtype, uint64_t seed) {
  Memory memory = allocate(elements * dtype_bytes(dtype));
  PhiloxStream draws(seed);
  for (int64_t i = 0; i < elements; ++i)
    store_element(memory.get(), dtype, i, draws.uniform(-1, 1));
  return memory;
}

struct Operands {
  Memory a, b, y;
  explicit Operands(const Contraction& c)
      : a(random_matrix(c.batch * c.m * c.k, c.in, 1)),
        b(random_matrix(c.batch * c.k * c.n, c.in, 2)),
        y(random_matrix(c.batch * c.m * c.n, c.out, 3)) {}
};

void report(benchmark::State& state, const Contraction& c) {
  state.counters["flops"] =
      benchmark::Counter(c.flops(), benchmark::Counter::kIsIterationInvariantRate);
}

ThreadPool& pool() {
  static ThreadPool instance(available_processors());
  return instance;
}

// A kernel as the runtime launches it: equal ranges of items.
void run_on_threads(benchmark::State& state, const Contraction& c, const Kernel& made) {
  const auto& kernel = dynamic_cast<const CpuKernel&>(made);
  const Operands operands(c);
  const Memory scratch = allocate(kernel.scratch_bytes(pool().workers()));
  struct RunContext {
    const CpuKernel& kernel;
    void* buffers[4];
  } launch{kernel, {operands.a.get(), operands.b.get(), operands.y.get(), scratch.get()}};
  for (auto _ : state) {
    pool().run(
        [](void* context, int worker) {
          const auto& l = *static_cast<const RunContext*>(context);
          const int64_t items = l.kernel.items();
          const int64_t begin = items * worker / pool().workers();
          const int64_t end = items * (worker + 1) / pool().workers();
          if (begin < end) l.kernel.run(l.buffers, begin, end, worker);
        },
        &launch);
  }
  report(state, c);
}

void run_tiled(benchmark::State& state, const Contraction& c) {
  const bool dots = c.transpose_b && !c.transpose_a && c.m <= 16;
  const VectorUnit unit = this_processor().vector_unit;
  run_on_threads(state, c,
                 *(dots ? cpu::make_dot_matmul(c, unit) : cpu::make_tiled_matmul(c, unit)));
}

void run_vnni(benchmark::State& state, const Contraction& c) {
  run_on_threads(state, c, *cpu::make_vnni_matmul(c));
}

void run_amx(benchmark::State& state, const Contraction& c) {
  std::string why_not;
  run_on_threads(state, c, *cpu::make_amx_tiled_matmul(c, &why_not));
}

const Contraction kMatmuls[] = {
    // The layers of a small language model: forward, both gradients, the head.
    {1, 768, 512, 128, false, true},
    {1, 768, 128, 512, false, true},
    {1, 768, 128, 512, false, false},
    {1, 512, 128, 768, true, false},
    {1, 768, 65, 128, false, true},
    // A larger layer.
    {1, 6400, 1024, 256, false, true},
    {1, 6400, 256, 1024, false, true},
    {1, 256, 1024, 6400, true, false},
    // A layer of configs/gpt-shakespeare.yaml with a batch of 16: forward, gradients of what goes in,
    // gradients of weights.
    {1, 4096, 1152, 384, false, true},
    {1, 4096, 384, 384, false, true},
    {1, 4096, 1536, 384, false, true},
    {1, 4096, 384, 1536, false, true},
    {1, 4096, 384, 1152, false, false},
    {1, 4096, 384, 384, false, false},
    {1, 4096, 384, 1536, false, false},
    {1, 4096, 1536, 384, false, false},
    {1, 1152, 384, 4096, true, false},
    {1, 384, 384, 4096, true, false},
    {1, 1536, 384, 4096, true, false},
    {1, 384, 1536, 4096, true, false},
    {48, 256, 256, 64, false, true},
    {48, 256, 64, 256, false, false},
    // The heads of attention: scores, values, gradients.
    {48, 64, 64, 32, false, true},
    {48, 64, 32, 64, false, false},
    {48, 64, 32, 64, true, false},
    // Shallow layers, whose results are larger than their operands.
    {1, 1024, 192, 64, false, true},
    {1, 1024, 256, 64, false, true},
    {1, 1024, 64, 64, false, true},
    {1, 384, 384, 128, false, true},
    {1, 384, 512, 128, false, true},
    // Low ranks, and heads that are no whole blocks.
    {5, 512, 32, 128, false, true},
    {5, 512, 32, 128, false, false},
    {5, 32, 128, 512, true, false},
    {5, 1024, 16, 64, false, true},
    {1, 1024, 80, 64, false, false},
    {1, 1024, 386, 64, false, true},
    // Few tokens before a large vocabulary, and through a layer.
    {1, 64, 50257, 768, false, true},
    {1, 64, 768, 50257, false, false},
    {1, 50257, 768, 64, true, false},
    {1, 64, 3072, 768, false, true},
    {1, 64, 768, 3072, false, false},
    {1, 3072, 768, 64, true, false},
    // A layer of configs/peptide.yaml with a batch of 4, in two microbatches.
    {1, 100, 1024, 256, false, true},
    {1, 100, 256, 1024, false, true},
    {1, 1024, 256, 100, true, false},
    {1, 256, 256, 100, true, false},
    // Generation: few tokens through a layer.
    {1, 8, 768, 768, false, true},
    {1, 1, 768, 768, false, true},
};

void register_all() {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (Contraction c : kMatmuls) {
      c.in = dtype;
      c.out = c.transpose_a ? DType::f32 : dtype;  // gradients of weights are f32
      const std::string name = fmt::format(
          "{}/{}{}x{}x{} {}{}", dtype_name(dtype), c.batch > 1 ? fmt::format("{}x", c.batch) : "",
          c.m, c.n, c.k, c.transpose_a ? 'T' : 'N', c.transpose_b ? 'T' : 'N');
      const auto add = [&](const char* contender,
                           void (*run)(benchmark::State&, const Contraction&)) {
        benchmark::RegisterBenchmark((name + "/" + contender).c_str(), run, c)
            ->UseRealTime()
            ->Unit(benchmark::kMicrosecond);
      };
      add("tiled", run_tiled);
      if (dtype == DType::bf16 && this_processor().avx512_bf16) add("vnni", run_vnni);
      if (dtype == DType::bf16 && this_processor().amx_bf16) add("amx", run_amx);
    }
}

const bool registered = (register_all(), true);

}  // namespace
