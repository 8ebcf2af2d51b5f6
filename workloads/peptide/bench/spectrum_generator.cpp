// How many synthetic spectra one thread makes in a second: a batch of 64 from each stage of the default
// curriculum, as the loader's workers fill it. Rows "stage/<name>"; `items_per_second` are spectra.
#include <benchmark/benchmark.h>

#include <vector>

#include "workloads/peptide/synthetic.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header
using peptide::CurriculumStage;
using peptide::SyntheticBatches;
using peptide::SyntheticOptions;

void fill(benchmark::State& state, const SyntheticOptions& options, const CurriculumStage& stage) {
  const auto source = SyntheticBatches::validation(options, stage, uint64_t{1} << 40);
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> buffers;
  for (const BatchField& field : source.fields())
    memory.emplace_back(static_cast<size_t>(field.type.bytes()));
  for (auto& buffer : memory) buffers.push_back(buffer.data());
  uint64_t position = 0;
  for (auto _ : state) {
    source.fill(position++, buffers);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) * options.batch_size);
}

const bool kRegistered = [] {
  for (const CurriculumStage& stage : peptide::default_curriculum())
    benchmark::RegisterBenchmark(("stage/" + stage.name).c_str(),
                                 [stage](benchmark::State& state) { fill(state, {}, stage); });
  benchmark::RegisterBenchmark("everything/realistic", [](benchmark::State& state) {
    SyntheticOptions options;
    options.ion_types = {peptide::IonType::b, peptide::IonType::y, peptide::IonType::a};
    options.neutral_losses = true;
    options.most_intense = 50;
    options.scale_to_base_peak = true;
    CurriculumStage stage = peptide::default_curriculum().back();
    stage.spectra.signal_suppression = 0.1;
    stage.spectra.high_noise_share = 0.2;
    fill(state, options, stage);
  });
  return true;
}();

}  // namespace
