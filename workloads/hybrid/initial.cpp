#include "workloads/hybrid/initial.h"

namespace fullbore {

nn::TimeMixInitializers time_mix_initializers(const HybridConfig& config, int64_t layer) {
  auto made = nn::TimeMixInitializers::of_layer(layer, config.layers, config.width);
  if (config.recorded_init) {
    for (Initializer* each : {&made.receptance, &made.key, &made.value, &made.gate, &made.output,
                              &made.mix_down, &made.mix_up, &made.decay_down, &made.decay_up})
      *each = Initializer::normal(0.02);
  } else if (config.rwkv_lm_init) {
    made.receptance = made.value = Initializer::orthogonal(1);
    made.key = made.gate = Initializer::orthogonal(0.1);
    if (config.fusion != HybridFusion::gains) made.output = Initializer::zeros();
  }
  return made;
}

}  // namespace fullbore
