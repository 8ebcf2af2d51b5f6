#include "workloads/hybrid/hybrid_keys.h"

#include "fullbore/text/text_keys.h"
#include "fullbore/text/text_model.h"
#include "workloads/hybrid/hybrid_language.h"

namespace fullbore {
namespace {

constexpr ConfigRange kOpenShare{.low = 0, .high = 1, .low_open = true, .high_open = true};
constexpr ConfigRange kExtent{.low = 1, .high = 65536};

#define FB_KEY(member) \
  "model." #member, [](Config& config) -> ConfigPlace { return &hybrid_keys(config).model.member; }

std::vector<ConfigField> fields() {
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
      {FB_KEY(learned_state), {}, {}, "sequences begin with parameters, initial.*, not with zeros"},
      {"data.initial_state",
       [](Config& config) -> ConfigPlace { return &hybrid_keys(config).data.initial_state; },
       {},
       {"zero", "carry", "carry-k", "noise", "shuffled"},
       "of a segment in its sequence: none, what the last one left, noise, or what another left"},
      {"data.segments",
       [](Config& config) -> ConfigPlace { return &hybrid_keys(config).data.segments; },
       {1, 4096},
       {},
       "of each sequence in a batch, for carry-k: gradients go through the borders between them"},
      {"data.state_noise",
       [](Config& config) -> ConfigPlace { return &hybrid_keys(config).data.state_noise; },
       {0, 1000},
       {},
       "size of noise, as a multiple of what the last batch left behind"},
      {"log.diagnostics",
       [](Config& config) -> ConfigPlace { return &hybrid_keys(config).diagnostics; },
       {},
       {},
       "validations tell the branches' variances, gates and entropies; training steps do not"}};
  for (ConfigField& field : fields) field.models = {"hybrid"};
  mark(fields, &ConfigField::is_size, {"model.inner", "model.hidden", "data.segments"});
  mark(fields, &ConfigField::is_taken, {"log.diagnostics"});
  return fields;
}

#undef FB_KEY

void check(const ConfigCheck& check) {
  const Config& config = check.config();
  if (config.model.name != "hybrid") return;
  const HybridKeys::Model& model = hybrid_keys(config).model;
  check.together(model.branch == "channel_softmax" || model.inner % model.mamba_heads == 0,
                 "model.inner", "is not a multiple of", "model.mamba_heads");
  const HybridKeys::Data& data = hybrid_keys(config).data;
  const bool goes_on = text_keys(config).data.batching == "sequences";
  check.together(data.initial_state == "zero" || goes_on, "data.initial_state",
                 "goes on along sequences, not with", "data.batching");
  check.together((data.initial_state == "carry-k") == (data.segments > 1), "data.initial_state",
                 "does not go with", "data.segments");
  check.together(!model.learned_state || goes_on, "model.learned_state",
                 "needs batches of sequences, not of", "data.batching");
  check.together(data.initial_state == "zero" || config.engine.accumulate == 1,
                 "data.initial_state", "does not go with", "engine.accumulate");
  check.together(data.initial_state == "zero" || config.engine.parallel_microbatches <= 1,
                 "data.initial_state", "does not go with", "engine.parallel_microbatches");
}

Workload hybrid_workload() {
  Workload workload = text_workload("hybrid", {hybrid_text_model()});
  workload.keys.fields = fields;
  workload.keys.retired_words = {{"model.branch", "stand_in", "channel_softmax"}};
  workload.keys.check = check;
  workload.set_optimizer_options = [](const Config&, OptimizerOptions& options) {
    options.ratios = {{"rwkv_to_mamba_gradient", "layers.*.rwkv*", "layers.*.mamba*"}};
  };
  return workload;
}

const WorkloadRegistrar kHybrid{hybrid_workload()};

}  // namespace

}  // namespace fullbore
