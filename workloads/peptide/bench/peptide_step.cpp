// Fullbore's side of peers/compare_peptide: bench/support/training_step.h.
#include <fmt/format.h>

#include <vector>

#include "bench/support/training_step.h"
#include "fullbore/base/error.h"
#include "workloads/peptide/peptide_keys.h"

namespace fullbore {
namespace {

void check(const Config& config) {
  const Config::Optim& optim = config.optim;
  const std::vector<std::string> decays = {
      fmt::format("match=* weight_decay={}", optim.weight_decay)};
  if (!config.data.path.empty() || peptide_keys(config).curriculum != "none" ||
      optim.name != "adamw" || optim.schedule != "cosine" || optim.groups != decays ||
      optim.ema_warmup || optim.clip_value != 0 || optim.noise_scale)
    throw UsageError(
        "the peers know the peptide model on synthetic spectra of one stage, "
        "trained by adamw with one decay of all tensors and a cosine schedule");
}

bench::Json sizes(const Config& config, const TrainingJob& job) {
  const PeptideKeys& peptide = peptide_keys(config);
  const int64_t peaks = job.training->fields().front().type.shape[1];
  return {{"peaks", peaks},
          {"width", peptide.model.hidden_dim},
          {"heads", peptide.model.num_heads},
          {"supervision_steps", peptide.model.num_supervision_steps},
          {"latent_steps", peptide.model.num_latent_steps},
          {"max_mass", peptide.model.max_mass},
          {"precursor_mz", peptide.model.precursor_input == "mz" ? 1 : 0},
          {"start_and_end", peptide.data.start_and_end ? 1 : 0},
          {"iteration_weights", peptide.loss.iteration_weights},
          {"label_smoothing", config.train.label_smoothing},
          {"ce_weight", peptide.loss.ce_weight},
          {"spectrum", peptide.loss.spectrum},
          {"coverage_sigma", peptide.loss.coverage_sigma},
          {"mask_padding", peptide.loss.mask_padding ? 1 : 0},
          {"precursor", peptide.loss.precursor},
          {"ema", config.optim.ema_decay}};
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  return fullbore::bench::run_training_step(argc, argv,
                                            {.model = "peptide",
                                             .check = fullbore::check,
                                             .sizes = fullbore::sizes,
                                             .counted = "spectra"});
}
