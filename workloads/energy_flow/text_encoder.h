#pragma once
#include <cstdint>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::energy_flow {

/// Places that texts can have: the rows of position tables.
inline constexpr int64_t kTextPlaces = 512;

struct EncoderSizes {
  int64_t vocabulary = 0;
  int32_t padding = 0;   ///< the token behind a text's last
  int64_t width = 256;   ///< of tokens
  int64_t layers = 2;    ///< of the transformer
  int64_t heads = 8;     ///< of the transformer
  int64_t hidden = 512;  ///< within its layers, or the channels of the dilated convolutions
  double dropout = 0.1;
  int64_t outputs = 0;  ///< cells of a surface, or numbers of an embedding
};

/// From texts, tokens i32 [B,T] with T <= kTextPlaces and padding at the end only, to surfaces [B,S] in (-1, 1): tokens
/// and learned positions, sinusoids at first; transformer layers that normalize behind each branch (Vaswani et al. 2017,
/// arXiv:1706.03762), blind to padding; the mean over tokens; and tanh(L_S(drop(norm(gelu(L_width(mean)))))).
/// Parameters under the scope "encoder".
Tensor encode_to_surface(Trace& trace, Tensor tokens, const EncoderSizes& sizes);

/// From the same texts to embeddings [B,W]: four residual blocks of two causal convolutions of 5 tokens each, with
/// dilations 1, 2, 4 and 8, weight normalization and ReLU; the mean over tokens; and a linear map. Bai, Kolter, Koltun
/// 2018, arXiv:1803.01271, section 3; Salimans, Kingma 2016, arXiv:1602.07868. Parameters under the scope "encoder".
Tensor encode_to_embedding(Trace& trace, Tensor tokens, const EncoderSizes& sizes);

}  // namespace fullbore::energy_flow
