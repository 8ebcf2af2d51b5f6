#pragma once
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// What a Mamba-2 layer remembers of the segments before; empty Tensors mean that the sequence begins.
struct Mamba2State {
  Tensor history;  ///< what the convolution has read last [B,convolution - 1,channels], as x
  Tensor memory;   ///< [B,H,N,P], f32
};
struct Mamba2Result {
  Tensor y;
  Mamba2State state;
};

struct Mamba2Options {
  int64_t inner = 0;  ///< width within the layer: H P
  int64_t heads = 1;
  int64_t states = 64;  ///< N
  int64_t groups = 1;   ///< of heads that share what is read and written
  int64_t convolution = 4;
  int64_t chunk = 64;
  Initializer projections = Initializer::normal(0.02);
  bool draws_start = false;  ///< steps and decays start anywhere in their ranges, not spread evenly
  Mamba2State state = {};
  Tensor resets = {};  ///< bool [B,T]: true where a sequence begins
};

/// [z | xbc | dt] = W_in x; xbc = silu(convolution(xbc)); y = ssd(x, softplus(dt + step_bias), -exp(decay),
/// b, c, skip); W_out (weight * rms_norm(y silu(z))). x [B,T,C] -> [B,T,C]; Dao, Gu 2024, arXiv:2405.21060,
/// section 7.1.
///
/// Parameters: `<name>.input.weight` [2 inner + 2 G N + H,C] (rows z, x, b, c, dt),
/// `.convolution.{weight,bias}` [inner + 2 G N,convolution], `.step_bias`, `.decay`, `.skip` [H],
/// `.norm.weight` [inner], `.output.weight` [C,inner]. The convolution starts in U(-0.5, 0.5); of the heads'
/// steps, spread evenly between 0.001 and 0.1 on a logarithmic scale, step_bias is the inverse softplus;
/// the decays -a are spread evenly between 1 and 16. With draws_start they are drawn from there.
/// Errors: UsageError for x of another rank, and inner not a multiple of heads.
Mamba2Result mamba2(Trace& trace, const std::string& name, Tensor x, Mamba2Options options,
                    SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
