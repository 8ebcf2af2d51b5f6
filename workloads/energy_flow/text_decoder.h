#pragma once
#include <cstdint>

#include "fullbore/nn/language_model_loss.h"
#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"
#include "workloads/energy_flow/text_encoder.h"

namespace fullbore::energy_flow {

struct DecoderSizes {
  int64_t vocabulary = 0;
  int64_t surface = 0;   ///< cells
  int64_t memory = 512;  ///< numbers that a surface becomes
  int64_t width = 256;
  int64_t layers = 2;
  int64_t heads = 8;
  int64_t hidden = 512;  ///< within the layers
  double dropout = 0.1;
};

/// What the decoder reads of surfaces [B,S]: [B,M],
///
///   norm(L_M(drop(norm(gelu(L_{S/2}(surface))))))
///
/// Parameters under the scope "adapter".
Tensor adapt_surface(Trace& trace, Tensor surface, const DecoderSizes& sizes);

/// Causal transformer layers over texts, of which each also attends to one vector, the memory [B,M]. Attention to a
/// single key gives its value whatever is asked, so that branch is a linear map of the memory, the same at all places.
/// Parameters under the scope "decoder"; the head is the token table.
///
/// tokens i32 [B,T], the one that begins a text first: what the head reads to tell the token behind each of them.
LanguageModelHead decode_texts(Trace& trace, Tensor memory, Tensor tokens,
                               const DecoderSizes& sizes);

/// One token more of each of R texts that are being written.
struct WritingStep {
  Tensor tokens;         ///< i32 [R]
  Tensor rows;           ///< i32 [R]: the text that each goes on from
  Tensor position;       ///< i64 []: the token's place
  int64_t capacity = 0;  ///< places that there are
};
/// Logits f32 [R,V] of what follows. Keys and values of earlier tokens are State of role `recurrent`.
Tensor decode_step(Trace& trace, Tensor memory, const WritingStep& step, const DecoderSizes& sizes);

/// From rows of tokens i32 [B,T] with padding at their end, as TextForm fills them: what a decoder is given, the token
/// `begin` first, and what it is to tell, `end` behind the last token and -1 behind that.
struct TeacherForcing {
  Tensor inputs;
  Tensor targets;
};
TeacherForcing teacher_forcing(Tensor tokens, int32_t padding, int32_t begin, int32_t end);

}  // namespace fullbore::energy_flow
