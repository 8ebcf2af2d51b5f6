#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

constexpr ConfigRange kOpenShare{.low = 0, .high = 1, .low_open = true, .high_open = true};
constexpr ConfigRange kExtent{.low = 1, .high = 65536};

#define FB_KEY(member) \
  "model." #member, [](Config& config) -> ConfigPlace { return &config.hybrid.model.member; }

}  // namespace

std::vector<ConfigField> hybrid_config_fields() {
  std::vector<ConfigField> fields = {
      {FB_KEY(branch),
       {},
       {"finch", "static_decay", "channel_softmax"},
       "beside Mamba-2: RWKV-6, the same without decays by input; a softmax over channels "
       "beside Mamba-1"},
      {FB_KEY(fusion),
       {},
       {"gains", "gate", "channel_gate", "projection", "weighted_sum", "residual"},
       "how a block joins its branches: HY, GF, HGF, CP, WS, RF"},
      {FB_KEY(mix_rank), kExtent, {}, "of what finch mixes tokens by"},
      {FB_KEY(decay_rank), kExtent, {}, "of what finch makes decays by"},
      {FB_KEY(inner), kExtent, {}, "channels within the Mamba branch; a multiple of mamba_heads"},
      {FB_KEY(mamba_heads), {1, 1024}, {}, "heads of the Mamba branch"},
      {FB_KEY(states), kExtent, {}, "that a channel of the Mamba branch has"},
      {FB_KEY(convolution), {2, 64}, {}, "tokens that the Mamba branch's convolution reads"},
      {FB_KEY(hidden), kExtent, {}, "channels of the feed-forward layers"},
      {FB_KEY(channel_mix), {}, {}, "RWKV-6's channel mixing is the feed-forward layer"},
      {FB_KEY(chunk),
       {1, 65536},
       {},
       "tokens that the recurrences take at once; no matter for results"},
      {FB_KEY(gate_start),
       kOpenShare,
       {},
       "what gated fusions let through of the RWKV branch at first"},
      {FB_KEY(rwkv_lm_init),
       {},
       {},
       "finch starts with orthogonal projections, as in RWKV-LM; false: with normal ones"},
      {FB_KEY(recorded_init),
       {},
       {},
       "start as the recorded runs did: every linear layer normal, of deviation 0.02"},
      {FB_KEY(learned_state), {}, {}, "streams begin with parameters, initial.*, not with zeros"},
      {"data.initial_state",
       [](Config& config) -> ConfigPlace { return &config.hybrid.data.initial_state; },
       {},
       {"zero", "carry", "carry-k", "noise", "shuffled"},
       "of a segment in its sequence: none, what the last one left, noise, or what another left"},
      {"data.segments",
       [](Config& config) -> ConfigPlace { return &config.hybrid.data.segments; },
       {1, 4096},
       {},
       "of each sequence in a batch, for carry-k: gradients go through the borders between them"},
      {"data.state_noise",
       [](Config& config) -> ConfigPlace { return &config.hybrid.data.state_noise; },
       {0, 1000},
       {},
       "size of noise, as a multiple of what the last batch left behind"},
      {"log.diagnostics",
       [](Config& config) -> ConfigPlace { return &config.hybrid.diagnostics; },
       {},
       {},
       "validations tell the branches' variances, gates and entropies; training steps do not"}};
  for (ConfigField& field : fields) field.models = {"hybrid"};
  return fields;
}

#undef FB_KEY

}  // namespace fullbore
