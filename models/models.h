#pragma once
#include <cstdint>

#include "fullbore/trace/trace.h"

namespace fullbore {

/// Sizes of a decoder-only language model.
struct LanguageModelConfig {
  int64_t vocabulary = 0;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t width = 128;
  int64_t context = 64;  ///< longest sequence, number of learned positions
  double dropout = 0;    ///< embeddings, attention probabilities, residual branches
  bool bias = true;      ///< in linear layers and layer norms
  bool tie_head = true;  ///< the output head is the token table
};

/// GPT with pre-layer-norm blocks, learned positions and exact GELU (Radford et al. 2019, "Language
/// models are unsupervised multitask learners"; block order of section 2.3).
/// tokens i32 [B,T], T <= context -> logits f32 [B,T,vocabulary].
Tensor gpt(Trace& trace, Tensor tokens, const LanguageModelConfig& config);

/// Mean cross-entropy of next-token prediction. logits [B,T,V], targets i32 [B,T] -> f32 [], in nats.
Tensor language_model_loss(Tensor logits, Tensor targets);

}  // namespace fullbore
