// Fullbore's side of peers/compare_hybrid: bench/support/training_step.h.
#include "bench/support/training_step.h"
#include "fullbore/base/error.h"
#include "workloads/hybrid/hybrid_keys.h"

namespace fullbore {
namespace {

void check(const Config& config) {
  const HybridKeys::Model& model = hybrid_keys(config).model;
  if (model.fusion != "gains" || model.channel_mix || model.branch == "channel_softmax" ||
      config.optim.warmup_from_zero || config.optim.decay_policy != "matrices")
    throw UsageError(
        "the peers know hybrids joined by gains, with feed-forward layers, warmed up from the "
        "first step");
  bench::check_text_job(config);
}

bench::Json sizes(const Config& config, const TrainingJob&) {
  const HybridKeys::Model& model = hybrid_keys(config).model;
  bench::Json json = bench::text_sizes(config);
  json.update({{"branch", model.branch == "finch" ? "finch" : "static"},
               {"mix_rank", model.mix_rank},
               {"decay_rank", model.decay_rank},
               {"inner", model.inner},
               {"mamba_heads", model.mamba_heads},
               {"states", model.states},
               {"convolution", model.convolution},
               {"hidden", model.hidden}});
  return json;
}

}  // namespace
}  // namespace fullbore

int main(int argc, char** argv) {
  return fullbore::bench::run_training_step(
      argc, argv, {.model = "hybrid", .check = fullbore::check, .sizes = fullbore::sizes});
}
