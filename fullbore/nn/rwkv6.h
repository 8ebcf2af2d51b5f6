#pragma once
#include "fullbore/trace/trace.h"

/// The layers of RWKV-6 ("Finch", x060): Peng et al. 2024, arXiv:2404.05892, section 4.2. They read a segment
/// of a sequence at a time: what they remember of the segments before comes in as `state` (an empty Tensor
/// means zero: the sequence begins) and goes out again. Whether gradients flow through it is the caller's
/// choice (stop_gradient), as is where it is kept.
namespace fullbore::nn {

/// The token before each: [B,T,C] from x and `previous` [B,C] (none: zero); zero behind a reset.
Tensor shift_tokens(Tensor x, Tensor previous, Tensor resets, SourceLoc loc = SourceLoc::here());
/// The last token, which is `previous` of the next segment; of no tokens, `previous` itself.
Tensor last_token(Tensor x, Tensor previous, SourceLoc loc = SourceLoc::here());

struct TimeMixState {
  Tensor previous;  ///< the last token read [B,C], as x
  Tensor memory;    ///< [B,H,K,K], f32
};
struct TimeMixResult {
  Tensor y;
  TimeMixState state;
};

/// How the parameters of one layer start.
struct TimeMixInitializers {
  Initializer mix_x, mix_w, mix_k, mix_v, mix_r, mix_g;  ///< [C]
  Initializer mix_down, mix_up;                          ///< [C,5 R], [5,R,C]
  Initializer decay, decay_down, decay_up;               ///< [C], [C,R], [R,C]
  Initializer bonus;                                     ///< [H,K]
  Initializer receptance, key, value, gate, output;      ///< [C,C]
  Initializer norm;                                      ///< [C]

  /// Those of RWKV-LM for layer `layer` of `layers`, save for its orthogonal matrices and its zeros at the
  /// output: all projections are normal, and the output's deviation is 0.02 / sqrt(2 layers), for a norm
  /// behind a layer of zeros would amplify its gradients a thousandfold.
  static TimeMixInitializers of_layer(int64_t layer, int64_t layers, int64_t width);
};

struct TimeMixOptions {
  int64_t heads = 1;
  int64_t mix_rank = 32;
  int64_t decay_rank = 64;
  int64_t chunk = 64;
  TimeMixInitializers initializers = {};
  TimeMixState state = {};
  Tensor resets = {};  ///< bool [B,T]: true where a sequence begins
};

/// Time mixing with decays that depend on the input, x [B,T,C] -> [B,T,C], C a multiple of heads. Parameters:
///   <name>.mix.{x,w,k,v,r,g} [C]   shares of the token before
///   <name>.mix.down [C,5 R], .mix.up [5,R,C]
///   <name>.decay.base [C], .decay.down [C,R], .decay.up [R,C]
///   <name>.bonus [H,K]
///   <name>.{receptance,key,value,gate,output}.weight [C,C]
///   <name>.norm.{weight,bias} [C]  of each head by itself, epsilon 64e-5
TimeMixResult rwkv6_time_mix(Trace& trace, const std::string& name, Tensor x,
                             TimeMixOptions options, SourceLoc loc = SourceLoc::here());

struct ChannelMixOptions {
  int64_t width = 0;     ///< of the hidden layer
  Tensor previous = {};  ///< the last token read [B,C]
  Tensor resets = {};
  Initializer mix = Initializer::given({});  ///< [C], of both; none given: 0.5
  Initializer projections = Initializer::normal(0.02);
};
struct ChannelMixResult {
  Tensor y;
  Tensor previous;
};
/// sigmoid(W_r x^r) relu(W_k x^k)^2 W_v, with x^c = x + (x of the token before - x) mix_c. Parameters
/// `<name>.mix.{k,r}` [C], `<name>.key.weight` [width,C], `.value.weight` [C,width],
/// `.receptance.weight` [C,C].
ChannelMixResult rwkv6_channel_mix(Trace& trace, const std::string& name, Tensor x,
                                   ChannelMixOptions options, SourceLoc loc = SourceLoc::here());

struct StaticMixOptions {
  int64_t heads = 1;
  int64_t chunk = 64;
  double decay = -5;  ///< logarithm of minus the log-decay of every key at first
  Initializer projections = Initializer::normal(0.02);
  Tensor memory = {};  ///< [B,H,K,K]
  Tensor resets = {};
};
struct StaticMixResult {
  Tensor y;
  Tensor memory;
};
/// The same recurrence with decays that do not depend on the input, nor on the token before; with norms,
/// inner residuals and a hidden layer of its own:
///   h = x + W_o (sigmoid(r) wkv6(r, k, v)), r, k, v = W norm(x);  y = h + F_v relu(F_k norm(h))^2
/// Parameters `<name>.norm`, `.hidden_norm` (weight, bias), `.decay`, `.bonus` [H,K],
/// `.{key,receptance,value,output}.weight` [C,C], `.up.weight` [4 C,C], `.down.weight` [C,4 C].
StaticMixResult rwkv6_static_mix(Trace& trace, const std::string& name, Tensor x,
                                 StaticMixOptions options, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
