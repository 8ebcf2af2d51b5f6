/// A token at a time through trained models' shapes, in fp32, also row-invariant, in bf16 with weights that are prepacked and without
/// (low_precision_weight_copies), and in int8: rows "gpt-shakespeare/int8/workers:1/streams:1", for each of the configurations below
/// whose model can continue texts. Run it where configs/ is:
///
///     bench_decode --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true
///
/// Counters: tokens per second, and `of_bandwidth`, the share of the machine's measured memory bandwidth at which
/// weights are read; a model that fits into caches may have more than all of it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/passes/gemm/quantize_linears.h"
#include "fullbore/runtime/quantized_state.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

constexpr int64_t kVocabulary = 65;  // distinct characters of tiny-shakespeare

int64_t vocabulary(const Config& config) {
  return text_keys(config).model.vocabulary > 0 ? text_keys(config).model.vocabulary : kVocabulary;
}

/// How weights are read.
struct Form {
  const char* name;
  bool int8 = false;
  DType precision = DType::f32;
  bool keeps_derived_weights = true;
  bool row_invariant = false;

  int64_t bytes() const { return int8 ? 1 : dtype_bytes(precision); }
};
constexpr Form kForms[] = {{"fp32"},
                           {"fp32-row-invariant", false, DType::f32, true, true},
                           {"fp32-not-kept", false, DType::f32, false},
                           {"bf16", false, DType::bf16},
                           {"bf16-not-kept", false, DType::bf16, false},
                           {"int8", true}};

Graph step(const Config& config, int64_t streams) {
  const int64_t tokens = vocabulary(config);
  return Generator::trace(model_decode(config, tokens), generator_sizes(config, tokens, streams),
                          1);
}

/// Numbers of the size that models start with: what they are is no matter for time, if no denormals come of them.
State random_state(const Graph& graph, int workers) {
  State state(state_entries(graph), open_device("cpu", workers));
  PhiloxStream draws(1);
  for (const StateEntry& entry : state.entries())
    if (entry.role == Role::parameter && entry.type.dtype == DType::f32) {
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      for (float& x : values) x = 0.02F * static_cast<float>(draws.normal());
      state.write(entry.name, values);
    }
  return state;
}

/// Matmuls in 8 bits, all that can be.
QuantizedLinears quantized(const Graph& graph) {
  std::set<std::string> names;
  for (const Graph::Input& input : graph.inputs())
    if (input.role == Role::parameter) names.insert(input.name);
  return quantize_linears(graph, names);
}

/// What a token reads of the parameters; rows that are looked up are few.
int64_t weight_bytes(const Graph& graph, const Form& form) {
  int64_t bytes = 0;
  const std::set<std::string> matmuls = quantized(graph).replaced;
  for (const StateEntry& entry : state_entries(graph)) {
    const bool gemm = matmuls.contains(entry.name);
    if (entry.role != Role::parameter || (entry.type.shape.rank() == 2 && !gemm)) continue;
    bytes += gemm ? form.bytes() * entry.type.elements() : entry.type.bytes();
  }
  return bytes;
}

/// A model that continues texts. The last one is kept: the library asks for a row's more than once, and to draw and
/// prepack a large model's weights takes longer than to measure it.
struct Prepared {
  Graph graph;
  GeneratorSizes sizes;
  State state;
  Generator generator;

  Prepared(const Config& config, const Form& form, int workers, int64_t streams)
      : graph(step(config, streams)),
        sizes(generator_sizes(config, vocabulary(config), streams)),
        state(state_of(graph, form, workers)),
        generator(model_decode(config, vocabulary(config)), sizes, state, options_of(form)) {}

  static State state_of(const Graph& graph, const Form& form, int workers) {
    State state = random_state(graph, workers);
    return form.int8 ? quantized_state(state, state_entries(quantized(graph).graph))
                     : std::move(state);
  }
  static CompileOptions options_of(const Form& form) {
    CompileOptions options{.precision = form.precision, .row_invariant = form.row_invariant};
    if (!form.keeps_derived_weights) options.passes.disabled.insert("low_precision_weight_copies");
    return options;
  }
};

Prepared& prepared(const std::string& row, const Config& config, const Form& form, int workers,
                   int64_t streams) {
  static std::string kept;
  static std::unique_ptr<Prepared> last;
  if (kept != row) {
    last.reset();
    last = std::make_unique<Prepared>(config, form, workers, streams);
    kept = row;
  }
  return *last;
}

void run(benchmark::State& timer, const std::string& row, const Config& config, const Form& form,
         int workers, int64_t streams) {
  Prepared& model = prepared(row, config, form, workers, streams);
  Generator& generator = model.generator;
  const std::vector<int32_t> next(static_cast<size_t>(streams), 1);
  const int32_t first[] = {1};
  generator.begin(first);
  int64_t place = 1;
  for (auto _ : timer) {
    if (model.sizes.context > 0 &&
        ++place >= model.sizes.context) {  // what a full one costs is another matter
      timer.PauseTiming();
      generator.begin(first);
      place = 1;
      timer.ResumeTiming();
    }
    generator.append(next);
  }
  const auto count = static_cast<double>(timer.iterations());
  timer.counters["tokens"] =
      benchmark::Counter(count * static_cast<double>(streams), benchmark::Counter::kIsRate);
  const double traffic = count * static_cast<double>(weight_bytes(model.graph, form));
  timer.counters["of_bandwidth"] =
      benchmark::Counter(traffic / known_machine(model.state.device()).peaks.bytes_per_second,
                         benchmark::Counter::kIsRate);
}

void register_config(const std::string& name) {
  Config config;
  try {
    config = load_config("configs/" + name + ".yaml");
    model_decode(config, vocabulary(config));
  } catch (const UsageError&) {
    return;  // of no model that continues texts
  }
  for (const int workers : std::set<int>{1, available_processors()})
    for (const int64_t streams : {1, 8})
      for (const Form& form : kForms) {
        const std::string row =
            fmt::format("{}/{}/workers:{}/streams:{}", name, form.name, workers, streams);
        benchmark::RegisterBenchmark(row.c_str(), [=](benchmark::State& timer) {
          run(timer, row, config, form, workers, streams);
        })->UseRealTime();
      }
}

const bool registered = [] {
  // Those that --benchmark_filter can name.
  for (const auto& entry : std::filesystem::directory_iterator("configs"))
    register_config(entry.path().stem().string());
  return true;
}();

}  // namespace
