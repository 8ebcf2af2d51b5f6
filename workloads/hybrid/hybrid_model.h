#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fullbore/nn/language_model_loss.h"
#include "fullbore/nn/mamba2.h"
#include "fullbore/nn/rwkv6.h"
#include "workloads/hybrid/fusion.h"

/// A recurrent language model: every block runs a linear-attention branch (RWKV-6, Peng et al. 2024,
/// arXiv:2404.05892) and a state-space branch (Mamba-2, Dao, Gu 2024, arXiv:2405.21060) side by side on the same
/// normalised input, fuses them, and applies a feed-forward layer. No attention, no positions: what a sequence of
/// tokens leaves behind is a state of constant size.
namespace fullbore {

enum class HybridBranch : uint8_t {
  finch,         ///< RWKV-6 time mixing, decays that depend on the input (nn::rwkv6_time_mix)
  static_decay,  ///< decays that do not, norms and a hidden layer of its own (nn::rwkv6_static_mix)
  channel_softmax  ///< no recurrence, and Mamba-1 for Mamba-2 (channel_softmax.h): the first recorded run
};

/// What a trained model is robbed of, to see what it is worth.
enum class HybridAblation : uint8_t {
  none,
  rwkv,        ///< what the RWKV branch makes is 0
  mamba,       ///< likewise
  rwkv_state,  ///< the RWKV branch forgets before every token
  mamba_state
};

/// Sizes of the model; B sequences, T tokens of a segment.
struct HybridConfig {
  HybridBranch branch = HybridBranch::finch;
  HybridFusion fusion = HybridFusion::gains;
  int64_t vocabulary = 0;
  int64_t layers = 8;
  int64_t width = 128;  ///< C, of the residual sequence
  int64_t heads = 4;    ///< H of the RWKV branch, divides C; K = C / H
  int64_t mix_rank = 32;
  int64_t decay_rank = 64;
  int64_t inner = 256;  ///< width of the Mamba branch
  int64_t mamba_heads = 4;
  int64_t states = 64;  ///< N, of a Mamba head
  int64_t convolution = 4;
  int64_t hidden = 512;      ///< of the feed-forward layers
  bool channel_mix = false;  ///< RWKV-6's, with a state of its own, for the feed-forward layers
  int64_t chunk = 64;        ///< tokens that the recurrences treat together; no matter for results
  double gate_start = 0.5;   ///< how far gates let the RWKV branch through at first, in (0, 1)
  double dropout = 0;        ///< embeddings and residual branches
  bool rwkv_lm_init = true;  ///< of finch: orthogonal projections (initial.h); else normal ones
  bool recorded_init = false;  ///< as the recorded runs started (initial.h, fusion.h)
  HybridAblation ablation = HybridAblation::none;
};

/// What a layer remembers of the tokens before; empty Tensors mean that the sequence begins.
struct HybridLayerState {
  nn::TimeMixState time_mix;  ///< `previous` of finch alone
  nn::Mamba2State mamba;
  Tensor channel_mix = {};  ///< [B,C], with channel_mix alone
};
struct HybridState {
  std::vector<HybridLayerState> layers;  ///< none: sequences begin
};

/// The tensors of a state in a fixed order, by which others keep, save, gather and scatter them: for each layer
///
///   layers.0.rwkv.previous         [B,C]
///   layers.0.rwkv.memory           [B,H,K,K]
///   layers.0.mamba.history         [B,convolution - 1,inner + 2 N]
///   layers.0.mamba.memory          [B,mamba_heads,N,inner / mamba_heads]
///   layers.0.channel_mix.previous  [B,C]
///
/// as far as the configuration has them; of channel_softmax Mamba-1's alone, [B,convolution - 1,inner] and [B,inner,N].
/// f32 all. The first axis is that of sequences. Zeros are the state of a sequence that begins.
struct HybridStateTensor {
  std::string name;
  TensorType type;
};
std::vector<HybridStateTensor> hybrid_state_tensors(const HybridConfig& config, int64_t batch);
/// A state out of its tensors, and back, in that order. UsageError for another number of them.
HybridState hybrid_state(const HybridConfig& config, std::span<const Tensor> tensors);
std::vector<Tensor> hybrid_tensors(const HybridConfig& config, const HybridState& state);

struct HybridInputs {
  Tensor tokens;           ///< i32 [B,T]
  HybridState state = {};  ///< behind the tokens before
  Tensor resets = {};      ///< bool [B,T]: true where a sequence begins; none: nowhere
};

struct HybridResult {
  LanguageModelHead
      head;  ///< hidden [B,T,C] behind the last norm, the token table: language_model_logits()
  HybridState state;                    ///< behind the last token
  std::vector<FusedBranches> branches;  ///< of each layer; what nobody reads is not computed
};

/// The model over a segment of B sequences. UsageError where sizes do not go together.
HybridResult hybrid(Trace& trace, const HybridInputs& inputs, const HybridConfig& config);

struct HybridLoss {
  LanguageModelLoss loss;
  HybridResult result;
};
/// Its loss by targets i32 [B,T], others than [0, V), such as the -1 of padding, count for nothing.
HybridLoss hybrid_loss(Trace& trace, const HybridInputs& inputs, Tensor targets,
                       const HybridConfig& config, const LanguageModelLossOptions& options = {});

}  // namespace fullbore
