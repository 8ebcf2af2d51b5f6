#include "workloads/peptide/peptide_workload.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/peptide/measured.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/peptide_keys.h"
#include "workloads/peptide/peptide_spectra.h"
#include "workloads/peptide/peptide_weights.h"
#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/spectrum_corruption.h"

namespace fullbore {
namespace {

using namespace peptide;

constexpr const char* kSample = "spectra";

/// All that decides what the parameters mean.
std::string model_identity(const Config& config) {
  const ModelSizes sizes = peptide_sizes(config);
  const std::vector<std::string>& modifications = peptide_keys(config).data.modifications;
  return fmt::format(
      "peptide hidden_dim={} symbols={} ({}) slots={} heads={} layers={}+{} steps={}x{} "
      "max_mass={} "
      "step_embedding={} gated_answer={} precursor={}",
      sizes.width, sizes.symbols, fmt::join(modifications, " "), sizes.slots, sizes.heads,
      sizes.encoder_layers, sizes.decoder_layers, sizes.supervision_steps, sizes.latent_steps,
      sizes.max_mass, sizes.step_embedding, sizes.gated_answer,
      peptide_keys(config).model.precursor_input);
}

bool validates(const Config& config) { return peptide_keys(config).data.validation_spectra > 0; }

ValidationSet validation(const Config& config) {
  const Curriculum curriculum = peptide_curriculum(config);
  const bool last = peptide_keys(config).data.validation_settings == "last_stage";
  const int64_t batch = config.train.batch_size;
  uint64_t batches =
      static_cast<uint64_t>((peptide_keys(config).data.validation_spectra + batch - 1) / batch);
  if (config.train.eval_batches > 0)
    batches = std::min(batches, static_cast<uint64_t>(config.train.eval_batches));
  auto source = std::make_shared<SyntheticBatches>(SyntheticBatches::validation(
      peptide_synthetic_options(config), last ? curriculum.back() : curriculum.front(), batches));
  return {std::move(source), batches, "sequence_accuracy"};
}

TrainingJob synthetic_job(const Config& config) {
  TrainingJob job;
  job.loss = peptide_loss(config);
  job.training = std::make_shared<SyntheticBatches>(peptide_synthetic_options(config),
                                                    peptide_curriculum(config));
  if (validates(config)) job.validation = validation(config);
  job.tokens_per_step = config.train.batch_size * peptide_keys(config).model.max_seq_len;
  job.sample_unit = kSample;
  job.shown = {{"token_accuracy", "token accuracy"}, {"sequence_accuracy", "peptide accuracy"}};
  job.options = training_options(config);
  job.identity = {{"data", "synthetic spectra"}, {"model", model_identity(config)}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

std::string about(const Config& config) {
  const Curriculum curriculum = peptide_curriculum(config);
  return fmt::format("spectra  synthetic, {} stage{}; {} to validate on", curriculum.size(),
                     curriculum.size() == 1 ? "" : "s",
                     peptide_keys(config).data.validation_spectra);
}

/// data.corrupt is of no use without spectra of a file, or without anything to disturb them by.
void check_corruption(const Config& config) {
  if (!peptide_keys(config).data.corrupt) return;
  if (config.data.path.empty())
    throw UsageError(
        "config: data.corrupt is for the spectra of a data.path; synthetic ones are disturbed "
        "without it");
  const Curriculum curriculum = peptide_curriculum(config);
  if (std::ranges::all_of(curriculum, [](const CurriculumStage& stage) {
        return SpectrumCorruption::is_off(stage.spectra);
      }))
    throw UsageError(
        "config: data.corrupt: nothing disturbs the spectra; set data.noise_peaks, "
        "data.peak_dropout, data.mass_error_ppm, data.intensity_variation or "
        "data.signal_suppression, or a train.curriculum");
}

/// Measured spectra: the same job on other batches.
class MeasuredData {
 public:
  MeasuredData(const Config& config, std::shared_ptr<const SpectrumCache> cache)
      : cache_(std::move(cache)),
        split_(split_by_peptide(*cache_, config.data.validation_fraction, kSplitSeed)) {
    if (split_.training.empty())
      throw DataError(fmt::format("{}: all {} spectra are of held-out peptides", config.data.path,
                                  cache_->size()));
  }

  TrainingJob job(const Config& config) const {
    TrainingJob job = synthetic_job(config);
    job.training =
        std::make_shared<MeasuredBatches>(cache_, split_.training, options(config, true));
    job.validation.reset();
    if (validates()) {
      auto held_out = std::make_shared<MeasuredBatches>(cache_, held_out_spectra(config),
                                                        options(config, false));
      const uint64_t batches = held_out->batches();
      job.validation = ValidationSet{std::move(held_out), batches, "sequence_accuracy"};
    }
    job.identity["data"] = identity(config);
    return job;
  }
  bool validates() const { return !split_.validation.empty(); }
  std::vector<std::vector<BatchField>> shapes(const Config& config) const {
    return MeasuredBatches(cache_, split_.training, options(config, true)).shapes();
  }
  std::string about(const Config& config) const {
    return fmt::format("spectra  {}: {} to train on{}, {} of other peptides held out",
                       config.data.path, split_.training.size(),
                       peptide_keys(config).data.corrupt ? ", disturbed anew each time" : "",
                       split_.validation.size());
  }

 private:
  // The held-out peptides are the same in every run.
  static constexpr uint64_t kSplitSeed = 0;

  /// Training spectra are shuffled, and disturbed if that is wanted; held-out ones are as they are.
  static MeasuredOptions options(const Config& config, bool shuffle) {
    MeasuredOptions result;
    result.batch_size = config.train.batch_size;
    result.max_peaks = peptide_keys(config).model.max_peaks;
    result.max_sequence = peptide_keys(config).model.max_seq_len;
    result.start_and_end = peptide_keys(config).data.start_and_end;
    result.trim = peptide_keys(config).data.trim_peaks;
    result.shuffle = shuffle;
    result.seed = static_cast<uint64_t>(config.run.seed);
    result.curriculum = peptide_curriculum(config);
    result.corrupt = shuffle && peptide_keys(config).data.corrupt;
    return result;
  }
  // train.eval_batches chooses before batches are made by size: the first of those would be the narrow ones.
  std::vector<uint64_t> held_out_spectra(const Config& config) const {
    std::vector<uint64_t> spectra = split_.validation;
    const auto most = static_cast<uint64_t>(config.train.eval_batches * config.train.batch_size);
    if (most > 0 && spectra.size() > most) spectra.resize(most);
    return spectra;
  }
  std::string identity(const Config& config) const {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < cache_->size(); ++i) {
      const CachedSpectrum spectrum = cache_->get(i);
      hash = hash_bytes(spectrum.peaks.data(), spectrum.peaks.size() * 8, hash);
      hash = hash_bytes(spectrum.ids.data(), spectrum.ids.size() * 4, hash);
    }
    return fmt::format("{} spectra, xxHash64 {}, {} held out", cache_->size(), hash_hex(hash),
                       config.data.validation_fraction);
  }

  std::shared_ptr<const SpectrumCache> cache_;
  PeptideSplit split_;
};

}  // namespace

QualityMetrics peptide_quality(const Config&) {
  constexpr double kShare = 0.005;
  const std::string source = "specification of peptide, section 8: less than 0.5 %";
  return {{.name = "token_accuracy",
           .better = Better::higher,
           .margin = kShare,
           .source = source + ", in points"},
          {.name = "sequence_accuracy",
           .better = Better::higher,
           .margin = kShare,
           .source = source + ", in points"},
          {.name = "mean_mass_error_ppm",
           .unit = "ppm",
           .margin = kShare,
           .is_relative = true,
           .source = source},
          {.name = "spectrum_loss", .margin = kShare, .is_relative = true, .source = source}};
}

OpenedWorkload peptide_workload(const Config& config, Console& console, const StandIn& synthetic) {
  if (synthetic.vocabulary > 0)
    throw UsageError("--vocabulary is for language models; model.name is " + config.model.name);
  check_corruption(config);
  OpenedWorkload workload;
  workload.unit = "peaks";
  workload.sample = kSample;
  workload.loss = peptide_loss;
  workload.weight_keys = peptide_weight_keys();
  workload.weight_tables = peptide_weight_tables;
  if (!config.data.path.empty()) {
    const auto data =
        std::make_shared<const MeasuredData>(config, open_measured_spectra(config, console));
    workload.batches = config.data.path;
    workload.shapes = [data](const Config& each) { return data->shapes(each); };
    workload.validates = [data](const Config&) { return data->validates(); };
    workload.job = [data](const Config& each) { return data->job(each); };
    workload.about = [data](const Config& each) { return data->about(each); };
    return workload;
  }
  workload.batches = "synthetic spectra";
  workload.shapes = [](const Config& each) {
    return SyntheticBatches(peptide_synthetic_options(each), peptide_curriculum(each)).shapes();
  };
  workload.validates = validates;
  workload.job = synthetic_job;
  workload.about = about;
  peptide_synthetic_options(config);  // what cannot be read is refused before anything is made
  return workload;
}

}  // namespace fullbore
