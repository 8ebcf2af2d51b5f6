#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/nn/grouped_attention.h"
#include "fullbore/nn/language_model_loss.h"

/// Decoder-only language models as functions of embeddings: what is put before a text need not be tokens.
namespace fullbore::nn {

/// What such a model is. Parameters are declared in the trace where they are used, under its scope.
struct DecoderConfig {
  enum class Style : uint8_t {
    /// Radford et al. 2019: layer norms, learned positions, GELU, as many heads of keys as of queries.
    gpt2,
    /// Touvron et al. 2023, arXiv:2302.13971: RMS norms, rotary positions, SwiGLU; Qwen2 too, which has biases.
    llama,
  };
  Style style = Style::llama;
  int64_t vocabulary = 0;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t width = 128;
  int64_t hidden = 0;     ///< of the MLP; 0: 4 width
  int64_t context = 64;   ///< longest sequence; gpt2: number of learned positions
  bool tie_head = true;   ///< the output head is the token table
  double epsilon = 1e-5;  ///< of the norms
  double dropout = 0;     ///< embeddings (gpt2), attention probabilities, residual branches

  // Of gpt2 alone.
  bool bias = true;  ///< in linear layers and layer norms
  bool tanh_gelu = false;

  // Of llama alone.
  int64_t groups = 0;      ///< heads of keys and values; 0: as many as heads
  int64_t head_width = 0;  ///< 0: width / heads
  double theta = 10000;    ///< of the rotary positions
  RotaryScaling scaling = {};
  bool attention_bias = false;   ///< of queries, keys and values
  bool projection_bias = false;  ///< of the attention's output
  bool mlp_bias = false;
  int64_t window = 0;        ///< tokens that a token sees, itself too; 0: all before it
  int64_t window_layer = 0;  ///< the first layer that has the window; those before it see all

  /// G and D of its keys and values.
  int64_t key_heads() const { return style == Style::llama && groups > 0 ? groups : heads; }
  int64_t key_width() const {
    return style == Style::llama && head_width > 0 ? head_width : width / heads;
  }

  bool operator==(const DecoderConfig&) const = default;
};

/// UsageError naming the member that does not fit.
void check_decoder(const DecoderConfig& config, SourceLoc loc = SourceLoc::here());
/// Parameters of all kinds, the tied head counted once.
int64_t decoder_parameters(const DecoderConfig& config);

/// `token_embedding.weight` [V,C].
Tensor decoder_token_table(Trace& trace, const DecoderConfig& config);
/// Its rows: tokens integer [...] -> [..., C]. A token outside [0, V) gives zeros.
Tensor decoder_embeddings(Trace& trace, Tensor tokens, const DecoderConfig& config);

/// What is put into a model from outside, to be trained beside it. Each may be empty.
struct DecoderAdditions {
  /// Keys and values that stand before a block's own (nn::KeyValues), with G heads of the model's width.
  std::function<KeyValues(int64_t layer)> before = {};
  /// x [B,T,C] of block `layer` -> [B,T,C], what the next one reads.
  std::function<Tensor(int64_t layer, Tensor x)> behind = {};
  /// Beside a linear layer of a block's attention: LinearAddition.
  std::function<Tensor(int64_t layer, const std::string& part, Tensor x, int64_t outputs)> beside =
      {};
};

struct DecoderInputs {
  Tensor embeddings;  ///< [B,T,C]: rows of the token table, or vectors of any other origin
  /// Integer [T] or [B,T]: of the rotary or learned positions. None: 0 ... T - 1, behind a cache's position, by row if
  /// that is paged.
  Tensor positions = {};
  /// bool [B or 1,1,T or 1,S], true = may attend, beside causality and window; S: T, or the cache's capacity.
  /// Padding behind a row's tokens needs none, for no token sees it.
  Tensor mask = {};
  CacheOptions cache = {};
  DecoderAdditions additions = {};
};
struct DecoderStates {
  Tensor last;                 ///< [B,T,C], behind the last norm: what the head reads
  std::vector<Tensor> chosen;  ///< [B,T,C] each
};
/// All blocks. `layers`: whose results are wanted besides, in any order: 0 is the sum of embeddings and learned
/// positions, i what block i - 1 gives, before the last norm (of which transformers' last hidden state is the result).
/// Errors: UsageError for embeddings that are not [B,T,C], a layer that there is not, and more tokens than context where
/// no positions are given.
DecoderStates decoder_states(Trace& trace, const DecoderInputs& inputs, const DecoderConfig& config,
                             std::span<const int64_t> layers = {},
                             SourceLoc loc = SourceLoc::here());
/// The head on hidden [..., C], of any rows that were gathered from `last`.
LanguageModelHead decoder_head(Trace& trace, Tensor hidden, const DecoderConfig& config);

}  // namespace fullbore::nn
