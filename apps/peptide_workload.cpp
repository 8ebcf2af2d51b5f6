#include <fmt/format.h>

#include "apps/peptide_job.h"
#include "apps/workload.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

using namespace peptide;

/// All that decides what the parameters mean.
std::string model_identity(const Config& config) {
  const ModelSizes sizes = peptide_sizes(config);
  const std::vector<std::string>& modifications = config.peptide.data.modifications;
  return fmt::format(
      "peptide hidden_dim={} symbols={} ({}) slots={} heads={} layers={}+{} steps={}x{} "
      "max_mass={} "
      "step_embedding={} gated_answer={} precursor={}",
      sizes.width, sizes.symbols, fmt::join(modifications, " "), sizes.slots, sizes.heads,
      sizes.encoder_layers, sizes.decoder_layers, sizes.supervision_steps, sizes.latent_steps,
      sizes.max_mass, sizes.step_embedding, sizes.gated_answer,
      config.peptide.model.precursor_input);
}

bool validates(const Config& config) { return config.peptide.data.validation_spectra > 0; }

ValidationSet validation(const Config& config) {
  const Curriculum curriculum = peptide_curriculum(config);
  const bool last = config.peptide.data.validation_settings == "last_stage";
  const int64_t batch = config.train.batch_size;
  uint64_t batches =
      static_cast<uint64_t>((config.peptide.data.validation_spectra + batch - 1) / batch);
  if (config.train.eval_batches > 0)
    batches = std::min(batches, static_cast<uint64_t>(config.train.eval_batches));
  auto source = std::make_shared<SyntheticBatches>(SyntheticBatches::validation(
      peptide_synthetic_options(config), last ? curriculum.back() : curriculum.front(), batches));
  return {std::move(source), batches, "sequence_accuracy"};
}

TrainingJob job_of(const Config& config) {
  TrainingJob job;
  job.loss = peptide_loss(config);
  job.training = std::make_shared<SyntheticBatches>(peptide_synthetic_options(config),
                                                    peptide_curriculum(config));
  if (validates(config)) job.validation = validation(config);
  job.tokens_per_step = config.train.batch_size * config.peptide.model.max_seq_len;
  job.options = training_options(config);
  job.identity = {{"data", "synthetic spectra"}, {"model", model_identity(config)}};
  job.config = config_yaml(config);
  job.config_json = config_json(config);
  return job;
}

std::string about(const Config& config) {
  const Curriculum curriculum = peptide_curriculum(config);
  return fmt::format("spectra  synthetic, {} stage{}; {} to validate on", curriculum.size(),
                     curriculum.size() == 1 ? "" : "s", config.peptide.data.validation_spectra);
}

}  // namespace

Workload peptide_workload(const Config& config, Console& /*console*/) {
  Workload workload;
  workload.unit = "peaks";
  workload.batches = "synthetic spectra";
  workload.loss = peptide_loss;
  workload.shapes = [](const Config& each) {
    return SyntheticBatches(peptide_synthetic_options(each), peptide_curriculum(each)).shapes();
  };
  workload.validates = validates;
  workload.job = job_of;
  workload.about = about;
  peptide_synthetic_options(config);  // what cannot be read is refused before anything is made
  return workload;
}

}  // namespace fullbore
