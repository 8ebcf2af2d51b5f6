#include "apps/peptide_model.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "apps/job_options.h"
#include "apps/peptide_job.h"
#include "apps/trained_state.h"
#include "fullbore/base/error.h"
#include "fullbore/trace/trace.h"
#include "models/peptide/spectrum_batch.h"

namespace fullbore {
namespace {

using namespace peptide;

// What a prediction reads: the fields up to the targets.
constexpr size_t kSpectrumFields = 5;

std::vector<BatchField> prediction_fields(const Config& config, int64_t batch) {
  return spectrum_fields(batch, config.peptide.model.max_peaks, config.peptide.model.max_seq_len,
                         /*has_precursor_weight=*/false);
}

Graph trace_prediction(const Config& config, int64_t batch) {
  Trace trace("predict", false);
  const std::vector<BatchField> fields = prediction_fields(config, batch);
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

TrainedPeptideModel load_peptide_model(const std::string& run_or_checkpoint) {
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  const std::string& path = checkpoint.folder.path();
  Config config = parse_config(checkpoint.record.config, path + "/config.json");
  if (config.model.name != "peptide")
    throw UsageError(
        fmt::format("{} is of a {} model, not of model.name=peptide", path, config.model.name));
  choose_caches(config);
  State state = trained_state(checkpoint, config, state_entries(trace_prediction(config, 1)));
  ResidueAlphabet alphabet = peptide_alphabet(config);
  return {path, checkpoint.record.step, std::move(config), std::move(alphabet), std::move(state)};
}

void PeptidePredictor::Free::operator()(void* memory) const { std::free(memory); }

PeptidePredictor::PeptidePredictor(TrainedPeptideModel& model, int64_t batch)
    : model_(model),
      batch_(batch),
      answers_(model.config.peptide.model.num_supervision_steps),
      slots_(model.config.peptide.model.max_seq_len),
      team_(worker_count(model.config)) {
  program_ = std::make_unique<Program>(Program::compile(
      trace_prediction(model.config, batch), model.state, team_, compile_options(model.config)));
  for (const BatchField& field : prediction_fields(model.config, batch)) {
    const auto bytes = static_cast<size_t>(field.type.bytes());
    memory_.emplace_back(std::aligned_alloc(64, (bytes + 64) / 64 * 64));
    if (!memory_.back()) throw std::bad_alloc();
    std::memset(memory_.back().get(), 0, bytes);
    buffers_.push_back(memory_.back().get());
  }
}

PeptidePredictor::~PeptidePredictor() = default;

void PeptidePredictor::fill(std::span<const PreparedSpectrum> spectra) {
  const int64_t peaks = model_.config.peptide.model.max_peaks;
  for (int64_t row = 0; row < batch_; ++row) {
    const SpectrumRow place = spectrum_row(buffers_, row, peaks, slots_);
    const auto index = static_cast<size_t>(row);
    const bool given = index < spectra.size();
    write_peaks(
        given ? std::span<const uint64_t>(spectra[index].peaks) : std::span<const uint64_t>(),
        place);
    *place.precursor_mass = given ? static_cast<float>(spectra[index].precursor_mass) : 0.0F;
    *place.precursor_charge = given ? spectra[index].precursor_charge : 1;
  }
}

void PeptidePredictor::predict(std::span<const PreparedSpectrum> spectra,
                               const std::function<void(size_t, const PredictedSlots&)>& take) {
  fill(spectra);
  const std::vector<const void*> inputs(buffers_.begin(),
                                        buffers_.begin() + static_cast<ptrdiff_t>(kSpectrumFields));
  program_->run(inputs);
  const auto* answers = static_cast<const int32_t*>(program_->result(program_->output("answers")));
  const auto* probabilities =
      static_cast<const float*>(program_->result(program_->output("probabilities")));
  const auto slots = static_cast<size_t>(slots_);
  std::vector<int32_t> own(static_cast<size_t>(answers_) * slots);  // [T,S] out of [T,B,S]
  for (size_t i = 0; i < spectra.size(); ++i) {
    for (size_t t = 0; t < static_cast<size_t>(answers_); ++t)
      std::copy_n(answers + (t * static_cast<size_t>(batch_) + i) * slots, slots,
                  own.begin() + static_cast<ptrdiff_t>(t * slots));
    take(i, {own, {probabilities + i * slots, slots}});
  }
}

}  // namespace fullbore
