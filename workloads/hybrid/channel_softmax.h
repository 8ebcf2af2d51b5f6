#pragma once
#include "fullbore/nn/mamba2.h"

/// The branches of the first recorded run, kept to tell it apart from the models that followed: what was called
/// RWKV-6 had no recurrence, and beside it stood Mamba-1 (Gu, Dao 2023, arXiv:2312.00752).
namespace fullbore {

/// h = x + W_o (r softmax(k) v) silu(g), r, k, v, g = W norm(x), the softmax over channels;
/// h + sigmoid(W_cr norm(h)) W_cv relu(W_ck norm(h))^2. x [B,T,C] -> [B,T,C]; a token sees no other. Parameters
/// `<name>.norm`, `.hidden_norm` (weight, bias), `.{receptance,key,value,gate,output}.weight` [C,C],
/// `.hidden_receptance.weight` [C,C], `.up.weight` [4 C,C], `.down.weight` [C,4 C], all normal, 0.02; and `.decay`,
/// `.bonus` [H,C / H], which were counted though nothing read them.
Tensor channel_softmax_branch(Trace& trace, const std::string& name, Tensor x, int64_t heads);

struct Mamba1Options {
  int64_t inner = 0;
  int64_t states = 16;  ///< N, of each channel
  int64_t convolution = 4;
  nn::Mamba2State state = {};  ///< history [B,convolution - 1,inner], memory [B,inner,N]
  Tensor resets = {};          ///< bool [B,T]: true where a sequence begins
};
/// [u | z] = W_in x; u = silu(convolution(u)); [low | b | c] = W_x u; dt = softplus(W_dt low + bias);
/// h_t = exp(dt a) h_{t-1} + (dt u) b^T, y = h c + skip u; W_out (y silu(z)). A step at a time. Parameters
/// `<name>.input.weight` [2 inner,C], `.convolution.{weight,bias}`, `.selection.weight` [R + 2 N,inner] with R = C / 16
/// rounded up, `.step.{weight,bias}` [inner,R], `.decay` [inner,N], `.skip` [inner], `.output.weight` [C,inner].
nn::Mamba2Result mamba1(Trace& trace, const std::string& name, Tensor x,
                        const Mamba1Options& options);

}  // namespace fullbore
