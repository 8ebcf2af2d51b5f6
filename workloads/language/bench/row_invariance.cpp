/// What engine.row_invariant costs: steps of training and of decoding over a paged cache, off and on in turns, as rows
/// "xs/train:8x256/on". "xs" is GPT of 0.86 M parameters (V 257, C 128, 4 layers, 4 heads, T 256), "gpt2" of 124 M.
///
///     bench_row_invariance --benchmark_repetitions=7 --benchmark_enable_random_interleaving=true
///
/// One worker; `time` and `CPU` are processor time of the process, so that other programs disturb little.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/nn/key_value_cache.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "workloads/language/models.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

struct Model {
  const char* name;
  LanguageModelConfig config;
};
const Model kModels[] = {
    {"xs",
     {.vocabulary = 257, .layers = 4, .heads = 4, .width = 128, .context = 256, .tanh_gelu = true}},
    {"gpt2",
     {.vocabulary = 50257,
      .layers = 12,
      .heads = 12,
      .width = 768,
      .context = 1024,
      .tanh_gelu = true}}};

/// A batch input's memory.
struct alignas(64) Block {
  std::byte bytes[64];
};
using Memory = std::vector<Block>;

template <class T, class Value>
Memory filled(const TensorType& type, const Value& value) {
  Memory memory(static_cast<size_t>(type.bytes() / 64 + 1));
  auto* to = reinterpret_cast<T*>(memory.data());
  for (int64_t i = 0; i < type.elements(); ++i) to[i] = static_cast<T>(value(i));
  return memory;
}

/// A program on weights of the size that models start with, and a batch whose rows have `seen` places before them.
class Step {
 public:
  Step(const Graph& graph, bool row_invariant, int64_t seen)
      : state_(state_entries(graph), open_device("cpu", 1)),
        program_(Program::compile(with_weights(graph), state_, {.row_invariant = row_invariant})) {
    for (const Graph::Input& input : program_.plan().graph.inputs()) {
      if (is_kept(input.role)) continue;
      const TensorType& type = program_.plan().graph.type(input.value);
      const bool places = input.name == "position";
      const auto value = [&](int64_t i) -> int64_t {
        if (places) return seen;
        if (input.name == "pages") return i;
        if (input.name == "copies") return -1;
        return 1;
      };
      memory_.push_back(type.dtype == DType::i64 ? filled<int64_t>(type, value)
                                                 : filled<int32_t>(type, value));
    }
    for (const Memory& each : memory_) batch_.push_back(each.data());
    run();
  }
  void run() { program_.run(batch_); }

 private:
  const Graph& with_weights(const Graph& graph) {
    PhiloxStream draws(1);
    for (const StateEntry& entry : state_.entries()) {
      if (entry.role != Role::parameter) continue;
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      draws.normals(values, 0, 0.02);
      state_.write(entry.name, values);
    }
    return graph;
  }

  State state_;
  Program program_;
  std::vector<Memory> memory_;
  std::vector<const void*> batch_;
};

Graph training(const LanguageModelConfig& config, int64_t rows, int64_t length) {
  const TensorType type{DType::i32, {rows, length}};
  const LossFunction loss = [config](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const LanguageModelLoss found = gpt_loss(trace, batch[0], batch[1], config);
    return {found.mean, found.predictions};
  };
  return trace_training_step(loss, {{"inputs", type}, {"targets", type}}, {}, {}).graph;
}

Graph decoding(const LanguageModelConfig& config, int64_t rows, int64_t places) {
  const int64_t pages = places / nn::kPageTokens;
  Trace trace("decode", false);
  const PagedInputs inputs{trace.batch("tokens", {DType::i32, {rows, 1}}),
                           trace.batch("position", {DType::i64, {rows}}),
                           trace.batch("counts", {DType::i64, {rows}}),
                           trace.batch("pages", {DType::i32, {rows, pages}}),
                           trace.batch("copies", {DType::i32, {rows, 2}}),
                           rows * pages};
  trace.result("logits", gpt_paged_decode(trace, inputs, config));
  return trace.finish();
}

void register_step(const std::string& name, const std::function<Graph()>& graph, int64_t seen) {
  for (const bool on : {false, true})
    benchmark::RegisterBenchmark(fmt::format("{}/{}", name, on ? "on" : "off").c_str(),
                                 [=](benchmark::State& timer) {
                                   // The repetitions of both are made in turns: what is prepared is kept.
                                   static std::map<std::string, std::unique_ptr<Step>> kept;
                                   std::unique_ptr<Step>& step =
                                       kept[fmt::format("{}/{}", name, on)];
                                   if (!step) step = std::make_unique<Step>(graph(), on, seen);
                                   for (auto _ : timer) step->run();
                                 })
        ->MeasureProcessCPUTime()
        ->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  for (const Model& model : kModels) {
    const LanguageModelConfig config = model.config;
    const bool large = config.width > 500;
    const int64_t rows = large ? 1 : 8, length = 256;
    register_step(
        fmt::format("{}/train:{}x{}", model.name, rows, length),
        [=] { return training(config, rows, length); }, 0);
    for (const int64_t texts : {1, 16, large ? 64 : 128})
      register_step(
          fmt::format("{}/decode:{}x1", model.name, texts),
          [=] { return decoding(config, texts, 256); }, 160);
  }
  return true;
}();

}  // namespace
