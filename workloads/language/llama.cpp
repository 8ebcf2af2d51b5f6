#include "workloads/language/llama.h"

#include "fullbore/nn/modules.h"
#include "fullbore/text/paged_rows.h"

namespace fullbore {
namespace {

LanguageModelHead head_of(Trace& trace, Tensor tokens, nn::DecoderInputs inputs,
                          const nn::DecoderConfig& config) {
  inputs.embeddings = nn::decoder_embeddings(trace, tokens, config);
  return nn::decoder_head(trace, nn::decoder_states(trace, inputs, config).last, config);
}

}  // namespace

LanguageModelHead llama_hidden(Trace& trace, Tensor tokens, const nn::DecoderConfig& config) {
  return head_of(trace, tokens, {}, config);
}

LanguageModelHead llama_branched_hidden(Trace& trace, const BranchedTokens& inputs,
                                        const nn::DecoderConfig& config) {
  return head_of(
      trace, inputs.tokens,
      {.embeddings = {}, .positions = inputs.positions, .mask = nn::same_branch(inputs.branches)},
      config);
}

Tensor llama(Trace& trace, Tensor tokens, const nn::DecoderConfig& config) {
  return language_model_logits(trace, llama_hidden(trace, tokens, config));
}

Tensor llama_decode(Trace& trace, const DecodeInputs& inputs, const nn::DecoderConfig& config) {
  const Tensor x = nn::decoder_embeddings(trace, inputs.tokens, config);
  const Tensor h =
      nn::decoder_states(
          trace,
          {.embeddings = x, .cache = {.position = inputs.position, .capacity = inputs.capacity}},
          config)
          .last;
  const Tensor row = dynamic_slice(h, inputs.row, 1, 1);
  return squeeze(language_model_logits(trace, nn::decoder_head(trace, row, config)), 1);
}

Tensor llama_paged_decode(Trace& trace, const PagedInputs& inputs,
                          const nn::DecoderConfig& config) {
  const Tensor x = nn::decoder_embeddings(trace, inputs.tokens, config);
  const Tensor h =
      nn::decoder_states(trace, {.embeddings = x, .cache = paged_cache(inputs)}, config).last;
  const LanguageModelHead made = nn::decoder_head(trace, last_rows(h, inputs), config);
  return squeeze(language_model_logits(trace, made), 1);
}

LanguageModelLoss llama_loss(Trace& trace, Tensor tokens, Tensor targets,
                             const nn::DecoderConfig& config,
                             const LanguageModelLossOptions& options) {
  return language_model_loss(trace, head_of(trace, tokens, {}, config), targets, options);
}

LanguageModelLoss llama_packed_loss(Trace& trace, const PackedTokens& inputs, Tensor targets,
                                    const nn::DecoderConfig& config,
                                    const LanguageModelLossOptions& options) {
  const nn::DecoderInputs places{
      .embeddings = {}, .positions = inputs.positions, .mask = nn::same_segment(inputs.segments)};
  return language_model_loss(trace, head_of(trace, inputs.tokens, places, config), targets,
                             options);
}

}  // namespace fullbore
