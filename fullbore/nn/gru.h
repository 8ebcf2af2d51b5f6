#pragma once
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// Of a layer of I inputs and H units; gate rows in the order r, z, n.
struct GruWeights {
  Tensor input;        ///< [3 H, I]
  Tensor hidden;       ///< [3 H, H]
  Tensor input_bias;   ///< [3 H]
  Tensor hidden_bias;  ///< [3 H]
};

/// A step of a gated recurrent unit: x [..., I], h [..., H] -> the next h [..., H].
///
///   r = sigmoid(W_ir x + b_ir + W_hr h + b_hr)
///   z = sigmoid(W_iz x + b_iz + W_hz h + b_hz)
///   n = tanh(W_in x + b_in + r (W_hn h + b_hn))
///   h' = (1 - z) n + z h
///
/// Source: Cho et al. 2014, arXiv:1406.1078, with the reset gate behind the product as cuDNN and PyTorch have it.
Tensor gru_step(Tensor x, Tensor h, const GruWeights& weights, SourceLoc loc = SourceLoc::here());
/// The same where W_i x [..., 3 H], without its bias, is known already: weights.input is not read.
Tensor gru_gates(Tensor from_input, Tensor h, const GruWeights& weights,
                 SourceLoc loc = SourceLoc::here());

/// Parameters `<name>.weight_ih`, `.weight_hh`, `.bias_ih`, `.bias_hh`, f32: input rows uniform (Glorot, Bengio 2010),
/// hidden columns orthogonal (Saxe et al. 2014), biases zero.
GruWeights gru_weights(Trace& trace, const std::string& name, int64_t inputs, int64_t units,
                       SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
