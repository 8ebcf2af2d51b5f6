#include "workloads/latentwire/latent_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "workloads/latentwire/receiver_rows.h"

namespace fullbore {
namespace {

constexpr ConfigRange kCount{.low = 1, .high = 65536};
constexpr ConfigRange kCountOrNone{.low = 0, .high = 65536};
constexpr ConfigRange kLayers{.low = 0, .high = 64};
constexpr ConfigRange kNotNegative{.low = 0, .high = 1e6};
constexpr ConfigRange kPositive{.low = 0, .high = 1e6, .low_open = true};
constexpr ConfigRange kShare{.low = 0, .high = 1, .low_open = true};

#define FB_KEY(section, member) \
#section "." #member,         \
      [](Config & config) -> ConfigPlace { return &config.get<LatentKeys>().section.member; }

std::vector<ConfigField> wire_fields() {
  return {
      {FB_KEY(wire, encoder),
       {},
       {"bytes", "tokens", "sentence"},
       "what is read: bytes, or states of a frozen encoder's tokens, or their mean"},
      {FB_KEY(wire, text_encoder),
       {},
       {},
       "that encoder: a folder of transformers with a BERT, or random:minilm-l6"},
      {FB_KEY(wire, max_tokens), {3, 65536}, {}, "that encoder reads of a prompt"},
      {FB_KEY(wire, slots), kCountOrNone, {}, "vectors of the wire that all receivers read"},
      {FB_KEY(wire, own_slots), kCountOrNone, {}, "further vectors of each receiver alone"},
      {FB_KEY(wire, width), kCount, {}, "numbers of a vector of the wire"},
      {FB_KEY(wire, layers), kLayers, {}, "of the encoder, which reads bytes"},
      {FB_KEY(wire, heads), {1, 1024}, {}, "of the encoder's attention"},
      {FB_KEY(wire, pre_norm), {}, {}, "norms stand before attention and MLP, or behind the sums"},
      {FB_KEY(wire, refiner_layers), kLayers, {}, "of each receiver, on its vectors"},
      {FB_KEY(wire, max_bytes), {16, 65536}, {}, "of a prompt; of a longer one the context is cut"},
      {FB_KEY(wire, question_first), {}, {}, "the encoder reads the question before the context"},
      {FB_KEY(wire, keep),
       kShare,
       {},
       "share of common vectors that are kept in training, at first"},
      {FB_KEY(wire, final_keep), kShare, {}, "the same in the last step"},
      {FB_KEY(wire, keep_power), kPositive, {}, "of the way from one to the other"},
      {FB_KEY(data, training_prompts), {0, 1e12}, {}, "that are trained on, the first; 0: all"},
      {FB_KEY(data, group_by_length),
       {},
       {},
       "batches have answers of like length: of 16 batches' prompts, sorted by it"},
      {FB_KEY(data, validation_prompts), {0, 1e8}, {}, "that are held out; 0: no validation"},
  };
}

std::vector<ConfigField> receiver_fields() {
  return {
      {FB_KEY(receivers, folders),
       {},
       {},
       "frozen language models NAME=RUN, =FOLDER of transformers, =FILE.gguf, =random:bpe or "
       ":bytes"},
      {FB_KEY(receivers, anchor_mode),
       {},
       {"text", "chat", "none"},
       "between the vectors and the answer: receivers.anchor, the header of a reply, or nothing"},
      {FB_KEY(receivers, anchor), {}, {}, "text between the vectors and the answer; may be empty"},
      {FB_KEY(receivers, scaffold),
       {},
       {"plain", "chat"},
       "prompts as text: as they are, or as the user's turn; so with anchor_mode=chat"},
      {FB_KEY(receivers, system), {}, {}, "what the system's turn says, with such turns"},
      {FB_KEY(receivers, begin),
       {},
       {"auto", "none", "front", "before_anchor"},
       "where the beginning token stands; auto: before the answer where there is no anchor"},
      {FB_KEY(receivers, max_answer_tokens),
       {1, 4096},
       {},
       "of an answer with its end; longer ones are cut"},
      {FB_KEY(receivers, calibration),
       {},
       {"none", "embed_rms", "fixed", "train_stats"},
       "root mean square of vectors: as it comes, the embeddings', fixed_rms; or measured in "
       "training"},
      {FB_KEY(receivers, fixed_rms), kPositive, {}, "with calibration=fixed"},
      {FB_KEY(receivers, gain), kPositive, {}, "factor of that root mean square"},
      {FB_KEY(receivers, colour), {}, {}, "vectors get the embeddings' mean and deviation"},
      {FB_KEY(reader, kind),
       {},
       {"bpe", "bytes"},
       "Llama's style on 512 byte pairs, or GPT-2's style on bytes"},
  };
}

std::vector<ConfigField> conditioning_fields() {
  return {
      {FB_KEY(conditioning, deep_prefix),
       {},
       {},
       "vectors become keys and values of each block, and are not read before the anchor"},
      {FB_KEY(conditioning, attending_blocks),
       {1, 4096},
       {},
       "blocks behind which hidden states attend to the wire, counted from 1; []: none"},
      {FB_KEY(conditioning, attending_heads), {1, 1024}, {}, "of that attention"},
      {FB_KEY(conditioning, coprocessor),
       kCountOrNone,
       {},
       "width of the MLP that makes one more key and value a block of the mean; 0: none"},
      {FB_KEY(conditioning, rank),
       {0, 4096},
       {},
       "of trained terms beside the attention's matrices (LoRA); 0: none"},
      {FB_KEY(conditioning, rank_scale), kPositive, {}, "terms are multiplied by it over the rank"},
      {FB_KEY(conditioning, adapted_blocks), {1, 4096}, {}, "the first blocks have such terms"},
      {FB_KEY(conditioning, gist_tokens),
       {0, 4096},
       {},
       "of a prompt, whose embeddings the wire is to give back, for a loss; 0: none"},
      {FB_KEY(conditioning, gist_dropped),
       {.low = 0, .high = 1, .high_open = true},
       {},
       "share of them that a step leaves out of that loss"},
  };
}

std::vector<ConfigField> loss_fields() {
  return {
      {FB_KEY(loss, first_weight), kNotNegative, {}, "of the first token's loss"},
      {FB_KEY(loss, first_schedule),
       {},
       {"none", "warmup", "cosine"},
       "the weight as it is, rising over 200 steps, or falling from first_peak"},
      {FB_KEY(loss, first_peak), kNotNegative, {}, "of cosine; 0: max(8, 2 first_weight)"},
      {FB_KEY(loss, first_hold), {0, 1}, {}, "share of the steps that cosine stays at its peak"},
      {FB_KEY(loss, first_autoscale),
       {},
       {},
       "times the first token's loss over that of all, 1 to 8"},
      {FB_KEY(loss, early_weight), kNotNegative, {}, "of the loss of the first K tokens"},
      {FB_KEY(loss, early_tokens), {1, 4096}, {}, "K at first"},
      {FB_KEY(loss, final_early_tokens), {1, 4096}, {}, "K in the last step"},
      {FB_KEY(loss, early_power), kPositive, {}, "of the way from one to the other"},
      {FB_KEY(loss, distillation_weight),
       kNotNegative,
       {},
       "of the divergence from what the model says on the text, first K tokens"},
      {FB_KEY(loss, temperature), kPositive, {}, "of that divergence"},
      {FB_KEY(loss, state_weight), kNotNegative, {}, "of the difference of hidden states there"},
      {FB_KEY(loss, state_layers), {0, 4096}, {}, "whose states they are; 0: the embeddings"},
      {FB_KEY(loss, teacher_cache),
       {},
       {"off", "f32", "bf16"},
       "states of the model on the text are kept in files, of questions that come again"},
      {FB_KEY(loss, scale_weight), kNotNegative, {}, "of (s - 1)^2, of each adapter's scale s"},
      {FB_KEY(loss, rms_weight),
       kNotNegative,
       {},
       "of the squared difference from the embeddings' root mean square"},
      {FB_KEY(loss, entropy_weight), kNotNegative, {}, "of -H of the first token's probabilities"},
      {FB_KEY(loss, statistics_weight),
       kNotNegative,
       {},
       "of the difference from the embeddings' mean and deviation"},
      {FB_KEY(loss, slot_weight),
       kNotNegative,
       {},
       "of the distance of the first vectors from the answer's embeddings"},
      {FB_KEY(loss, slot_distance), {}, {"cosine", "squared", "both"}, "that distance"},
      {FB_KEY(loss, gist_weight), kNotNegative, {}, "of the loss of conditioning.gist_tokens"},
      {FB_KEY(loss, text_warmup),
       {0, 1e9},
       {},
       "steps of which every other is a text step, without the teacher; 0: none"},
      {FB_KEY(loss, text_tail), {0, 1}, {}, "probability that a step behind them is a text step"},
      {FB_KEY(loss, text_step_weight),
       kNotNegative,
       {},
       "of the loss on the text in text steps, which trains conditioning.rank alone"},
      {FB_KEY(loss, align_weight),
       kNotNegative,
       {},
       "in text steps, of the squared distance of vectors from the answer's embeddings"},
      {FB_KEY(loss, align_tokens), {1, 4096}, {}, "of the answer, whose embeddings they are"},
  };
}

std::vector<ConfigField> switch_fields() {
  const std::vector<std::string> own = {"off", "on", "check"};
  const std::vector<std::string> engines = {"as_set", "off", "on", "check"};
  return {
      {FB_KEY(switches, one_pass),
       {},
       own,
       "all tokens from one pass over a row; off: a pass each"},
      {FB_KEY(switches, head_rows),
       {},
       own,
       "logits of needed places alone, a tile at a time; off: of every place of a row"},
      {FB_KEY(switches, length_buckets),
       {},
       own,
       "answers are padded to the batch's; off: to the longest of all"},
      {FB_KEY(switches, token_cache),
       {},
       own,
       "tokens of a file's questions are kept from the first epoch on"},
      {FB_KEY(switches, loader_workers),
       {},
       engines,
       "data.workers: on: 1 at least; off: 0. check: is the loss the same either way?"},
      {FB_KEY(switches, gradient_accumulation),
       {},
       engines,
       "engine.accumulate: on: 2 at least; off: 1"},
      {FB_KEY(switches, fused_optimizer),
       {},
       engines,
       "the pass fuse, which makes one kernel of an update; off: a kernel an operation"},
      {FB_KEY(switches, mixed_precision), {}, engines, "engine.precision: on: bf16; off: fp32"},
      {FB_KEY(switches, recompute), {}, engines, "engine.recompute: on: full; off: off"},
      {FB_KEY(switches, tiled_attention),
       {},
       engines,
       "engine.attention: on: tiled; off: decomposed"},
      {FB_KEY(switches, teacher_cache), {}, engines, "loss.teacher_cache: on: f32; off: off"},
      {FB_KEY(switches, data_parallel),
       {},
       engines,
       "engine.parallel_microbatches: on: 2 at least; off: 1"},
  };
}

#undef FB_KEY

}  // namespace

std::vector<ConfigField> latent_fields() {
  std::vector<ConfigField> fields = wire_fields();
  for (auto* more : {&receiver_fields, &conditioning_fields, &loss_fields, &switch_fields})
    for (ConfigField& field : more()) fields.push_back(std::move(field));
  for (ConfigField& field : fields)
    field.models = {std::string_view(field.key).starts_with("reader.") ? kReaderModel
                                                                       : kLatentModel};
  for (ConfigField& field : fields)
    if (field.key == "data.validation_prompts") field.models = {kLatentModel, kReaderModel};
  mark(fields, &ConfigField::names_file, {"receivers.folders", "wire.text_encoder"});
  mark(fields, &ConfigField::is_taken, {"receivers.anchor", "receivers.system"});
  mark(fields, &ConfigField::is_size,
       {"wire.slots", "wire.own_slots", "wire.width", "wire.layers", "wire.max_bytes",
        "wire.refiner_layers", "receivers.max_answer_tokens"});
  return fields;
}

void check_latent_keys(const ConfigCheck& check) {
  const Config& config = check.config();
  if (config.model.name != kLatentModel) return;
  const LatentKeys& keys = latent_keys(config);
  check.together(keys.wire.width % keys.wire.heads == 0, "wire.width", "is no multiple of",
                 "wire.heads");
  check.together(keys.wire.encoder == "bytes" || !keys.wire.text_encoder.empty(), "wire.encoder",
                 "reads what a text encoder says: name one by", "wire.text_encoder");
  check.together(keys.wire.slots + keys.wire.own_slots > 0, "wire.slots",
                 "is 0: nothing is sent, with", "wire.own_slots");
  // Means over steps are not known of parts of a batch.
  const bool counts = keys.receivers.calibration == "train_stats";
  check.together(!counts || config.engine.accumulate == 1, "receivers.calibration",
                 "counts whole batches: not with", "engine.accumulate");
  check.together(!counts || config.engine.parallel_microbatches <= 1, "receivers.calibration",
                 "counts whole batches: not with", "engine.parallel_microbatches");
  const bool has_anchor = latentwire::has_anchor(config);
  check.together(
      has_anchor || keys.receivers.begin != "before_anchor",
      keys.receivers.anchor_mode == "none" ? "receivers.anchor_mode" : "receivers.anchor",
      "leaves no anchor: use auto in place of", "receivers.begin");
  check.together(!keys.conditioning.deep_prefix || has_anchor || keys.receivers.begin != "none",
                 "conditioning.deep_prefix", "leaves nothing before the answer, with",
                 "receivers.begin");
}

}  // namespace fullbore
