// Fullbore's side of peers/compare_latentwire: bench/support/training_step.h.
#include "bench/support/training_step.h"
#include "fullbore/base/error.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {
namespace {

/// All sides train on the same batches, so that losses of several steps can be compared.
constexpr int64_t kSharedBatches = 16;

void check(const Config& config) {
  const LatentKeys& keys = latent_keys(config);
  const LatentKeys::Loss& loss = keys.loss;
  const bool one_loss = loss.first_weight == 0 && loss.early_weight == 0 &&
                        loss.entropy_weight == 0 && loss.statistics_weight == 0 &&
                        loss.rms_weight == 0 && loss.slot_weight == 0;
  if (keys.switches.length_buckets != "off")
    throw UsageError("all sides share batches of one shape: set switches.length_buckets=off");
  if (!one_loss || reads_text(config) || keys.wire.own_slots > 0 || keys.wire.refiner_layers > 0 ||
      keys.wire.keep != 1 || keys.wire.final_keep != 1 || !keys.wire.pre_norm ||
      keys.receivers.calibration != "embed_rms" || keys.receivers.gain != 1 ||
      keys.receivers.colour || keys.conditioning.deep_prefix ||
      !keys.conditioning.attending_blocks.empty() || keys.conditioning.coprocessor > 0 ||
      keys.conditioning.rank > 0 || config.model.dropout != 0 || config.optim.name != "adamw" ||
      config.optim.schedule != "cosine" || config.optim.warmup_from_zero ||
      config.optim.decay_policy != "matrices")
    throw UsageError(
        "the peers know prefixes calibrated to the embeddings and the loss of all tokens, without "
        "teacher, conditioning and dropped vectors, trained by adamw with a cosine schedule");
}

bench::Json sizes_of(const Receiver& receiver) {
  const nn::DecoderConfig& decoder = receiver.decoder;
  return {{"name", receiver.name},
          {"style", decoder.style == nn::DecoderConfig::Style::llama ? "llama" : "gpt2"},
          {"vocabulary", decoder.vocabulary},
          {"layers", decoder.layers},
          {"heads", decoder.heads},
          {"groups", decoder.key_heads()},
          {"width", decoder.width},
          {"hidden", decoder.hidden},
          {"context", decoder.context},
          {"tied", decoder.tie_head},
          {"theta", decoder.theta},
          {"tanh", decoder.tanh_gelu},
          {"epsilon", decoder.epsilon},
          {"anchor", receiver.anchor_ids}};
}

bench::Json sizes(const Config& config, const TrainingJob&) {
  const LatentKeys& keys = latent_keys(config);
  auto receivers = bench::Json::array();
  for (const Receiver& each : open_receivers(config)) {
    if (each.layout.begin != RowLayout::Begin::none)
      throw UsageError("the peers know rows without a beginning token; set receivers.begin=none");
    receivers.push_back(sizes_of(each));
  }
  return {{"slots", keys.wire.slots},
          {"latent_width", keys.wire.width},
          {"latent_layers", keys.wire.layers},
          {"latent_heads", keys.wire.heads},
          {"scale_weight", keys.loss.scale_weight},
          {"receivers", receivers.dump()}};
}

}  // namespace
}  // namespace fullbore::latentwire

int main(int argc, char** argv) {
  using namespace fullbore::latentwire;
  return fullbore::bench::run_training_step(argc, argv,
                                            {.model = fullbore::kLatentModel,
                                             .check = check,
                                             .sizes = sizes,
                                             .counted = "prompts",
                                             .shared_batches = kSharedBatches});
}
