/// Texts through a trained bridge, 64 at once and one by one:
///
///     fullbore train configs/energy-bridge.yaml run.dir=runs/bridge
///     bench_text_bridge runs/bridge --benchmark_repetitions=10 --benchmark_enable_random_interleaving=true
///
/// `read/B`: 64 sentences of the synthetic corpus become surfaces, B at a time; `write/B`: these become texts, greedily.
/// Nothing is remembered. Compare CPU times where the machine is shared.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "workloads/energy_flow/sentence_corpus.h"
#include "workloads/energy_flow/trained_bridge.h"

namespace {

using namespace fullbore;               // NOLINT: a program, not a header
using namespace fullbore::energy_flow;  // NOLINT

constexpr int64_t kTexts = 64;
constexpr uint64_t kCorpus = 42, kFirstPair = 100000;

void add(const std::string& run, int64_t batch) {
  const auto bridge = std::make_shared<TrainedBridge>(
      run, TrainedBridge::Sizes{.batch = batch, .beams = 1, .length = 16, .cached = 0});
  std::vector<std::string> texts;
  for (int64_t i = 0; i < kTexts; ++i)
    texts.push_back(sentence_pair(kCorpus, kFirstPair + static_cast<uint64_t>(i)).premise);
  const std::vector<float> surfaces = bridge->encode(texts);
  const auto by_batches = [batch](const auto& call) {
    for (int64_t begin = 0; begin < kTexts; begin += batch) call(begin);
  };
  benchmark::RegisterBenchmark(
      fmt::format("read/{}", batch).c_str(),
      [=](benchmark::State& state) {
        for (auto _ : state)
          by_batches([&](int64_t begin) {
            benchmark::DoNotOptimize(bridge->encode(
                std::span(texts).subspan(static_cast<size_t>(begin), static_cast<size_t>(batch))));
          });
      })
      ->MeasureProcessCPUTime()
      ->UseRealTime();
  benchmark::RegisterBenchmark(
      fmt::format("write/{}", batch).c_str(),
      [=](benchmark::State& state) {
        const auto cells = static_cast<size_t>(bridge->cells());
        const WritingOptions greedy{.temperature = 1, .correction_steps = 0};
        for (auto _ : state)
          by_batches([&](int64_t begin) {
            benchmark::DoNotOptimize(
                bridge->write(std::span(surfaces).subspan(static_cast<size_t>(begin) * cells,
                                                          static_cast<size_t>(batch) * cells),
                              greedy));
          });
      })
      ->MeasureProcessCPUTime()
      ->UseRealTime();
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  if (count != 2) {
    fmt::print(stderr, "usage: bench_text_bridge RUN [--benchmark_...]\n");
    return 2;
  }
  try {
    add(arguments[1], kTexts);
    add(arguments[1], 1);
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
