#include "workloads/peptide/peptide_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "fullbore/app/job_options.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/error.h"
#include "fullbore/trace/trace.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/peptide_keys.h"
#include "workloads/peptide/sized_order.h"
#include "workloads/peptide/spectrum_batch.h"

namespace fullbore {
namespace {

using namespace peptide;

// A prediction has no module of losses, which training keeps in fp32; patterns that match nothing are refused.
CompileOptions prediction_options(const Config& config) {
  CompileOptions options = trained_options(config);
  std::erase(options.fp32_scopes, "loss");
  return options;
}

// What a prediction reads: the fields up to the targets.
constexpr size_t kSpectrumFields = 5;

std::vector<BatchField> prediction_fields(const Config& config, int64_t batch, int64_t peaks) {
  return spectrum_fields(batch, peaks, peptide_keys(config).model.max_seq_len,
                         /*has_precursor_weight=*/false);
}

Graph trace_prediction(const Config& config, int64_t batch, int64_t peaks) {
  Trace trace("predict", false);
  const std::vector<BatchField> fields = prediction_fields(config, batch, peaks);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < kSpectrumFields; ++i)
    inputs.push_back(trace.batch(fields[i].name, fields[i].type));
  const Answers answers = recursive_model(
      trace, {inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]}, peptide_sizes(config));
  const int64_t last = answers.logits.dim(0) - 1;
  const Tensor final_logits = squeeze(slice(answers.logits, 0, last, last + 1), 0);
  trace.result("answers", argmax(answers.logits, 3));
  trace.result("probabilities", reduce_max(softmax(final_logits), {2}));
  return trace.finish();
}

}  // namespace

TrainedPeptideModel load_peptide_model(const std::string& run_or_checkpoint,
                                       const std::vector<std::string>& overrides) {
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  const std::string& path = checkpoint.folder.path();
  Config config =
      told_config(parse_stored_config(checkpoint.record.config, path + "/config.json", overrides));
  if (config.model.name != "peptide")
    throw UsageError(
        fmt::format("{} is of a {} model, not of model.name=peptide", path, config.model.name));
  choose_processor(config);
  choose_caches(config);
  State state =
      trained_state(checkpoint, config, trained_entries(checkpoint, trace_prediction(config, 1, 1)),
                    open_job_device(config));
  ResidueAlphabet alphabet = peptide_alphabet(config);
  return {path, checkpoint.record.step, std::move(config), std::move(alphabet), std::move(state)};
}

void PeptidePredictor::Free::operator()(void* memory) const { std::free(memory); }

PeptidePredictor::PeptidePredictor(TrainedPeptideModel& model, int64_t batch)
    : model_(model),
      batch_(batch),
      answers_(peptide_keys(model.config).model.num_supervision_steps),
      slots_(peptide_keys(model.config).model.max_seq_len),
      sizes_(peak_sizes(peptide_keys(model.config).model.max_peaks,
                        peptide_keys(model.config).data.trim_peaks)),
      programs_(sizes_.size()),
      arena_(std::make_shared<Arena>(model.state.device())) {
  for (const BatchField& field : prediction_fields(model.config, batch, sizes_.back())) {
    const auto bytes = static_cast<size_t>(field.type.bytes());
    memory_.emplace_back(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
    if (!memory_.back()) throw std::bad_alloc();
    std::memset(memory_.back().get(), 0, bytes);
    buffers_.push_back(memory_.back().get());
  }
}

PeptidePredictor::~PeptidePredictor() = default;

size_t PeptidePredictor::programs() const {
  return static_cast<size_t>(std::ranges::count_if(
      programs_, [](const std::unique_ptr<Program>& program) { return program != nullptr; }));
}

Program& PeptidePredictor::program(size_t size) {
  std::unique_ptr<Program>& program = programs_[size];
  if (!program)
    program = std::make_unique<Program>(
        Program::compile(trace_prediction(model_.config, batch_, sizes_[size]), model_.state,
                         prediction_options(model_.config), nullptr, arena_));
  return *program;
}

void PeptidePredictor::fill(std::span<const PreparedSpectrum> spectra, std::span<const size_t> rows,
                            int64_t peaks) {
  for (int64_t row = 0; row < batch_; ++row) {
    const SpectrumRow place = spectrum_row(buffers_, row, peaks, slots_);
    const auto index = static_cast<size_t>(row);
    if (index >= rows.size()) {
      write_peaks({}, place);
      *place.precursor_mass = 0;
      *place.precursor_charge = 1;
      continue;
    }
    const PreparedSpectrum& spectrum = spectra[rows[index]];
    write_peaks(spectrum.peaks, place);
    *place.precursor_mass = static_cast<float>(spectrum.precursor_mass);
    *place.precursor_charge = spectrum.precursor_charge;
  }
}

void PeptidePredictor::run(std::span<const PreparedSpectrum> spectra, std::span<const size_t> rows,
                           std::vector<Answers>& all) {
  const size_t size = peak_size_of(sizes_, spectra[rows.back()].peaks.size());
  Program& program = this->program(size);
  fill(spectra, rows, sizes_[size]);
  const std::vector<const void*> inputs(buffers_.begin(),
                                        buffers_.begin() + static_cast<ptrdiff_t>(kSpectrumFields));
  program.run(inputs);
  const auto answers = program.read_result<int32_t>(program.output("answers"));
  const auto probabilities = program.read_result<float>(program.output("probabilities"));
  const auto slots = static_cast<size_t>(slots_);
  for (size_t i = 0; i < rows.size(); ++i) {
    Answers& own = all[rows[i]];
    for (size_t t = 0; t < static_cast<size_t>(answers_); ++t) {  // [T,S] out of [T,B,S]
      const int32_t* const answer = answers.data() + (t * static_cast<size_t>(batch_) + i) * slots;
      own.slots.insert(own.slots.end(), answer, answer + slots);
    }
    const float* const probability = probabilities.data() + i * slots;
    own.probabilities.assign(probability, probability + slots);
  }
}

void PeptidePredictor::predict(std::span<const PreparedSpectrum> spectra,
                               const std::function<void(size_t, const PredictedSlots&)>& take) {
  std::vector<size_t> order(spectra.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return peak_size_of(sizes_, spectra[i].peaks.size()); });
  std::vector<Answers> answers(spectra.size());
  const auto batch = static_cast<size_t>(batch_);
  for (size_t begin = 0; begin < order.size(); begin += batch)
    run(spectra, std::span(order).subspan(begin, std::min(batch, order.size() - begin)), answers);
  for (size_t i = 0; i < spectra.size(); ++i) take(i, {answers[i].slots, answers[i].probabilities});
}

}  // namespace fullbore
