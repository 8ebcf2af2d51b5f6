#pragma once
#include <cstdint>

#include "fullbore/trace/trace.h"
#include "workloads/latentwire/text_encoder.h"

namespace fullbore::latentwire {

/// A prompt to the vectors of the wire.
struct EncoderSizes {
  enum class Reads : uint8_t {
    bytes,
    tokens,    ///< states of a frozen encoder of text
    sentence,  ///< their mean, of length 1: one vector for all slots
  };
  Reads reads = Reads::bytes;
  const TextEncoder* text = nullptr;  ///< with tokens and sentence
  int64_t width = 256;                ///< d_z
  int64_t layers = 6;
  int64_t heads = 8;
  int64_t slots = 32;     ///< M of the wire: those of all models and those of each one
  bool pre_norm = false;  ///< norms before attention and MLP, not behind the sums
  double dropout = 0;     ///< on attention probabilities and both branches
};

/// A layer of a transformer that sees both ways: attention and an MLP of 4 times the width with GELU, both with residuals.
/// x [B,T,C]; mask as attention() has it, may be empty.
struct LayerOptions {
  int64_t heads = 8;
  bool pre_norm = false;
  double dropout = 0;
};
Tensor encoder_layer(Trace& trace, const std::string& name, Tensor x, Tensor mask,
                     const LayerOptions& options);

/// bytes i32 [B,N], lengths i32 [B] -> [B,N,C], under the scope "encoder": a table of the 256 bytes plus sinusoids
/// PE(p, 2i) = sin(p / 10000^(2i/C)), PE(p, 2i + 1) = cos(same), then the layers and a norm. What stands at and behind a row's
/// length is not attended to, so that a row's result does not depend on what else is in the batch.
Tensor encode_bytes(Trace& trace, Tensor bytes, Tensor lengths, const EncoderSizes& sizes);

/// Features [B,N,C] of rows of `lengths` -> [B,slots,C], under the scope "pooler": learned queries Q attend to the features,
///
///   O = MHA(Q, X, X) + Q;  g = sigmoid(W_g norm(O) + b_g);  O = g O + (1 - g) Q;  z = O + W_2 GELU(W_1 norm(O))
///
/// with an inner width of 2 C.
Tensor pool_slots(Trace& trace, Tensor features, Tensor lengths, const EncoderSizes& sizes);

/// What a frozen encoder of text says of tokens i32 [B,N], and the wire made of it, under the scope "pooler": queries as above
/// with sinusoids added attend to its states, at its width, and norm(O) is projected to C; or the states' mean of length 1
/// is, and is each slot.
Tensor encode_tokens(Trace& trace, Tensor tokens, Tensor lengths, const EncoderSizes& sizes);

/// The wire of each prompt [B,slots,C], of units i32 [B,N] (prompt_units()).
Tensor encode_prompts(Trace& trace, Tensor units, Tensor lengths, const EncoderSizes& sizes);

/// Shared slots for all models and private ones for each: of a wire [B, shared + models * own, C] what model `model` reads,
/// [B, shared + own, C].
struct SlotSplit {
  int64_t shared = 8;
  int64_t own = 0;
  int64_t models = 1;

  int64_t wire_slots() const { return shared + models * own; }
  int64_t model_slots() const { return shared + own; }
};
Tensor slots_of_model(Tensor wire, const SlotSplit& split, int64_t model);

/// The wire with whole shared slots of each row dropped with probability 1 - keep and the others divided by keep, f32 [] in
/// (0, 1]; at least one shared slot of a row stays.
Tensor drop_slots(Trace& trace, Tensor wire, const SlotSplit& split, Tensor keep);

}  // namespace fullbore::latentwire
