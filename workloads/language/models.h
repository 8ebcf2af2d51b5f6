#pragma once
#include <cstdint>

#include "fullbore/nn/language_model_loss.h"
#include "fullbore/ops/ops.h"
#include "fullbore/text/text_model.h"
#include "fullbore/trace/trace.h"
#include "fullbore/train/paged_decode.h"

namespace fullbore {

/// Sizes of a decoder-only language model.
struct LanguageModelConfig {
  int64_t vocabulary = 0;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t width = 128;
  int64_t context = 64;    ///< longest sequence; with learned positions their number
  double dropout = 0;      ///< embeddings, attention probabilities, residual branches
  bool bias = true;        ///< in linear layers and layer norms
  bool tie_head = true;    ///< the output head is the token table
  bool tanh_gelu = false;  ///< GELU in its tanh form, as the published GPT-2 has it
  bool rms_norm =
      false;  ///< RMS norms in place of layer norms (Zhang, Sennrich 2019, arXiv:1910.07467)
  /// Queries and keys are turned by their positions (nn/rotary.h, base 10,000), in place of a table of positions that is
  /// added. Their matrices are three then: nn::grouped_attention with as many groups as heads.
  bool rotary = false;
};

/// GPT with pre-norm blocks, learned positions unless they are rotary, and GELU (Radford et al. 2019, "Language models
/// are unsupervised multitask learners"; block order of section 2.3).
/// tokens i32 [B,T], T <= context -> logits f32 [B,T,vocabulary].
Tensor gpt(Trace& trace, Tensor tokens, const LanguageModelConfig& config);

/// Rows of several documents each, i32 [B,T] all: pack_documents() makes them.
struct PackedTokens {
  Tensor tokens;
  Tensor segments;   ///< which document of its row a token is of
  Tensor positions;  ///< its place in the document, < context
};
/// The same model, in which no document sees another: the logits are those of each document alone.
Tensor gpt_packed(Trace& trace, const PackedTokens& inputs, const LanguageModelConfig& config);

/// What a program that continues texts is given.
struct DecodeInputs {
  Tensor tokens;         ///< i32 [B,T]
  Tensor position;       ///< i64 [], place of the first of them in each text
  Tensor row;            ///< i64 [], which of the T the logits are wanted for
  int64_t capacity = 0;  ///< places of the caches, at least position + T
};

/// The same model over caches of keys and values (nn::CacheOptions): the tokens at position ...
/// position + T - 1 follow those that earlier calls were given. Logits f32 [B,vocabulary] of what
/// comes after row `row`. Tokens behind that row may be padding: they influence nothing.
Tensor gpt_decode(Trace& trace, const DecodeInputs& inputs, const LanguageModelConfig& config);

/// The same of rows of different lengths, over a paged cache: logits f32 [S,vocabulary] of what follows each row's last
/// token.
Tensor gpt_paged_decode(Trace& trace, const PagedInputs& inputs, const LanguageModelConfig& config);

/// What gpt()'s logits are made of, hidden [B,T,C]: for losses that are made of some of them, or of blocks.
LanguageModelHead gpt_hidden(Trace& trace, Tensor tokens, const LanguageModelConfig& config);
/// The same of texts that share what they begin with. A row may be longer than the context, a text may not.
LanguageModelHead gpt_branched_hidden(Trace& trace, const BranchedTokens& inputs,
                                      const LanguageModelConfig& config);

/// The loss of gpt() by targets i32 [B,T]; others than [0, V), such as the -1 of padding, count for
/// nothing.
LanguageModelLoss gpt_loss(Trace& trace, Tensor tokens, Tensor targets,
                           const LanguageModelConfig& config,
                           const LanguageModelLossOptions& options = {});
/// The loss of gpt_packed().
LanguageModelLoss gpt_packed_loss(Trace& trace, const PackedTokens& inputs, Tensor targets,
                                  const LanguageModelConfig& config,
                                  const LanguageModelLossOptions& options = {});

}  // namespace fullbore
