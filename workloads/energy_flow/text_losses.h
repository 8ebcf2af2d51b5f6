#pragma once
#include "fullbore/train/config.h"
#include "fullbore/train/step_function.h"
#include "workloads/energy_flow/text_decoder.h"
#include "workloads/energy_flow/text_encoder.h"
#include "workloads/energy_flow/text_tokens.h"

namespace fullbore::energy_flow {

/// What of a text's form a graph must know.
struct TextTokens {
  int64_t vocabulary = 0;
  int32_t padding = 0, begin = 0, end = 0;
};
TextTokens text_tokens(const TextForm& form);

EncoderSizes encoder_sizes(const Config& config, const TextTokens& tokens);
DecoderSizes decoder_sizes(const Config& config, const TextTokens& tokens);
bool has_bridge(const Config& config);

/// What the encoder of bridge.encoder makes of texts i32 [B,T].
struct EncodedTexts {
  Tensor prediction;  ///< a surface [B,S], or of the dilated encoder an embedding [B,W]
  Tensor surface;     ///< [B,S]; of the dilated encoder what the mapper makes of the embedding
};
EncodedTexts encode_texts(Trace& trace, const Config& config, const TextTokens& form,
                          Tensor tokens);

/// Mean cross-entropy, in nats, of a decoder that is given the true tokens before each (Williams, Zipser 1989), and how
/// many it tells right; f32 [] each. surface [B,S], tokens i32 [B,T].
struct DecoderLoss {
  LanguageModelLoss loss;
  Tensor accuracy;
};
DecoderLoss decoder_loss(Trace& trace, const Config& config, const TextTokens& form, Tensor surface,
                         Tensor tokens);

/// Of model.name=energy_bridge, on the fields of TextBatches. The encoder learns the embedding's surface as the mapper
/// has it, or the dilated one the embedding itself, by 0.7 (1 - cosine) + 0.7 mean squared error; the decoder learns to
/// write the text of that surface. Metrics: encoder_loss, encoder_cosine (mean over texts, of surfaces), decoder_loss,
/// token_accuracy.
LossFunction bridge_loss(const Config& config, const TextTokens& form);

}  // namespace fullbore::energy_flow
