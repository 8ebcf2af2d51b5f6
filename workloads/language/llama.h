#pragma once
#include "fullbore/nn/decoder_model.h"
#include "workloads/language/models.h"

namespace fullbore {

/// Llama, and Qwen2 with its biases (fullbore/nn/decoder_model.h): tokens i32 [B,T], T <= context -> logits
/// [B,T,vocabulary].
Tensor llama(Trace& trace, Tensor tokens, const nn::DecoderConfig& config);
/// As gpt_hidden().
LanguageModelHead llama_hidden(Trace& trace, Tensor tokens, const nn::DecoderConfig& config);
/// As gpt_branched_hidden(); of a model without a window.
LanguageModelHead llama_branched_hidden(Trace& trace, const BranchedTokens& inputs,
                                        const nn::DecoderConfig& config);
/// As gpt_decode().
Tensor llama_decode(Trace& trace, const DecodeInputs& inputs, const nn::DecoderConfig& config);
/// As gpt_paged_decode().
Tensor llama_paged_decode(Trace& trace, const PagedInputs& inputs, const nn::DecoderConfig& config);
/// As gpt_loss() and gpt_packed_loss().
LanguageModelLoss llama_loss(Trace& trace, Tensor tokens, Tensor targets,
                             const nn::DecoderConfig& config,
                             const LanguageModelLossOptions& options = {});
LanguageModelLoss llama_packed_loss(Trace& trace, const PackedTokens& inputs, Tensor targets,
                                    const nn::DecoderConfig& config,
                                    const LanguageModelLossOptions& options = {});

}  // namespace fullbore
