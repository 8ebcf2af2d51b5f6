/// Rollouts of a GPT: rows "gpt2-124m/bf16/workers:1/rows:64/launch:1", of two shapes with random weights: GPT-2's, and "xs", 0.86
/// M parameters with a context of 256 bytes, which as "xs-long" completes prompts of 88; in fp32, in bf16, and in bf16 with keys and
/// values in f32 ("bf16-wide-pool"). Run it where configs/ is:
///
///     bench_rollout --benchmark_filter=xs --benchmark_repetitions=5 --benchmark_enable_random_interleaving=true
///
/// An iteration completes prompts of 46 or 88 tokens by 80 more each, eight of a prompt. Counters: generated tokens per second of
/// all, `decode` of the time of decoding alone, and `of_roofline`, its share of what the machine's measured peaks allow:
/// each step of all rows makes 2 N flops a row and reads the weights once and the keys and values of every row.
/// FULLBORE_ROLLOUT_DUMP=FOLDER writes the weights of `xs` there, and the tokens of the likeliest completions, for
/// peers/rollout_beside_transformers.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/base/threads.h"
#include "fullbore/device/registry.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/text/text_keys.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/rollout.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

constexpr int64_t kNewTokens = 80;
constexpr int64_t kSamples = 8;

struct Shape {
  const char* name;
  const char* config;
  std::vector<std::string> settings;
  int64_t vocabulary;
  int64_t prompt_tokens;
};
const std::vector<Shape>& shapes() {
  static const std::vector<std::string> small = {"model.layers=4",  "model.heads=4",
                                                 "model.width=128", "model.context=256",
                                                 "model.bias=true", "model.activation=gelu_tanh"};
  static const std::vector<Shape> all = {{"gpt2-124m", "configs/gpt2-124m.yaml", {}, 50257, 46},
                                         {"xs", "configs/default.yaml", small, 257, 46},
                                         {"xs-long", "configs/default.yaml", small, 257, 88}};
  return all;
}

struct Form {
  const char* name;
  DType precision, pool;
};
constexpr Form kForms[] = {{"fp32", DType::f32, DType::f32},
                           {"bf16", DType::bf16, DType::bf16},
                           {"bf16-wide-pool", DType::bf16, DType::f32}};

std::string own_name(const std::string& entry) {
  std::string name = entry;
  std::ranges::replace(name, '/', '_');
  return name;
}

/// A model with random weights that completes prompts.
struct Prepared {
  Config config;
  int64_t vocabulary, prompt_tokens;
  RolloutSizes sizes;
  State state;
  Rollout rollout;

  Prepared(const Shape& shape, const Form& form, int workers, int64_t rows, int64_t launch)
      : config(load_config(shape.config, shape.settings)),
        vocabulary(shape.vocabulary),
        prompt_tokens(shape.prompt_tokens),
        sizes{.slots = rows,
              .context = prompt_tokens + kNewTokens,
              .vocabulary = vocabulary,
              .chunk = 48,
              .tokens_per_launch = launch,
              .pool_dtype = form.pool},
        state(random_state(Rollout::trace(model_paged_decode(config, vocabulary), sizes), workers)),
        rollout(model_paged_decode(config, vocabulary), sizes, state,
                {.precision = form.precision}) {}

  static State random_state(const Graph& graph, int workers) {
    State state(state_entries(graph), open_device("cpu", workers));
    PhiloxStream draws(1);
    for (const StateEntry& entry : state.entries()) {
      if (entry.role != Role::parameter) continue;
      std::vector<float> values(static_cast<size_t>(entry.type.elements()));
      draws.normals(values, entry.name.ends_with("norm.weight") ? 1 : 0, 0.02);
      state.write(entry.name, values);
    }
    return state;
  }

  std::vector<RolloutPrompt> prompts() const {
    std::vector<RolloutPrompt> all;
    PhiloxStream draws(2);
    for (int64_t i = 0; i * kSamples < sizes.slots; ++i) {
      all.push_back({.tokens = std::vector<int32_t>(static_cast<size_t>(prompt_tokens)),
                     .samples = std::min(kSamples, sizes.slots),
                     .max_new_tokens = kNewTokens,
                     .index = static_cast<uint32_t>(i)});
      for (int32_t& token : all.back().tokens)
        token = static_cast<int32_t>(draws.below(static_cast<uint64_t>(vocabulary)));
    }
    return all;
  }

  /// Seconds of a step of all rows, halfway through their completions, at the machine's peaks.
  double roofline(DType precision) const {
    const MachinePeaks peaks = known_machine(state.device()).peaks;
    double elements = 0, pool = 0;
    for (const StateEntry& entry : state.entries()) {
      const auto count = static_cast<double>(entry.type.elements());
      if (entry.role == Role::parameter && !entry.name.starts_with("position")) elements += count;
      if (entry.role == Role::recurrent)
        pool += static_cast<double>(entry.type.bytes()) / static_cast<double>(entry.type.shape[0]);
    }
    const auto rows = static_cast<double>(sizes.slots);
    const double flops = 2 * elements * rows;
    const double bytes =
        elements * static_cast<double>(dtype_bytes(precision)) +
        rows * pool * (static_cast<double>(prompt_tokens) + 0.5 * static_cast<double>(kNewTokens));
    return std::max(flops / (precision == DType::f32 ? peaks.fp32_flops : peaks.bf16_flops),
                    bytes / peaks.bytes_per_second);
  }

  /// For a peer: every parameter, and what is likeliest to follow the prompts.
  void dump(const std::string& folder) {
    for (const StateEntry& entry : state.entries()) {
      if (entry.role != Role::parameter) continue;
      const std::vector<float> values = state.read<float>(entry.name);
      std::ofstream(folder + "/" + own_name(entry.name) + ".f32", std::ios::binary)
          .write(reinterpret_cast<const char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(float)));
    }
    std::ofstream text(folder + "/completions.txt");
    std::vector<RolloutPrompt> asked = prompts();
    for (RolloutPrompt& prompt : asked) prompt.samples = 1;
    rollout.run(asked, {.sampling = {.temperature = 0}}, [&](RolloutRow&& row) {
      for (const int32_t token : asked[row.prompt].tokens) text << token << ' ';
      for (const int32_t token : row.tokens) text << token << ' ';
      text << '\n';
    });
  }
};

Prepared& prepared(const std::string& name, const Shape& shape, const Form& form, int workers,
                   int64_t rows, int64_t launch) {
  static std::string kept;
  static std::unique_ptr<Prepared> last;
  if (kept != name) {
    last.reset();
    last = std::make_unique<Prepared>(shape, form, workers, rows, launch);
    kept = name;
    if (const char* folder = std::getenv("FULLBORE_ROLLOUT_DUMP")) last->dump(folder);
  }
  return *last;
}

void run(benchmark::State& timer, const std::string& name, const Shape& shape, const Form& form,
         int workers, int64_t rows, int64_t launch) {
  Prepared& model = prepared(name, shape, form, workers, rows, launch);
  const std::vector<RolloutPrompt> asked = model.prompts();
  model.rollout.run(asked, {}, [](RolloutRow&&) {});  // compiles what is not compiled yet
  double tokens = 0, decode_seconds = 0, prefill_seconds = 0, launches = 0;
  uint32_t step = 0;
  for (auto _ : timer) {
    const RolloutCounts counts = model.rollout.run(asked, {.step = ++step}, [](RolloutRow&&) {});
    tokens += static_cast<double>(counts.generated_tokens);
    decode_seconds += counts.decode_seconds;
    prefill_seconds += counts.prefill_seconds;
    launches += static_cast<double>(counts.decode_launches);
  }
  timer.counters["tokens"] = benchmark::Counter(tokens, benchmark::Counter::kIsRate);
  timer.counters["decode"] = tokens / decode_seconds;
  timer.counters["prefill_share"] = prefill_seconds / (decode_seconds + prefill_seconds);
  timer.counters["launches"] = launches / static_cast<double>(timer.iterations());
  timer.counters["of_roofline"] =
      model.roofline(form.precision) * tokens / static_cast<double>(rows) / decode_seconds;
}

const bool registered = [] {
  for (const Shape& shape : shapes())
    for (const Form& form : kForms)
      for (const int workers : {1, 2})
        for (const int64_t rows : {64, 128})
          for (const int64_t launch : {1, 4, 16}) {
            const std::string name = fmt::format("{}/{}/workers:{}/rows:{}/launch:{}", shape.name,
                                                 form.name, workers, rows, launch);
            benchmark::RegisterBenchmark(name.c_str(), [=, &shape](benchmark::State& timer) {
              run(timer, name, shape, form, workers, rows, launch);
            })->UseRealTime();
          }
  return true;
}();

}  // namespace
