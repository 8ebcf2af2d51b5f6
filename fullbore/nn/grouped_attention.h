#pragma once
#include <string>

#include "fullbore/nn/key_value_cache.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rotary.h"
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

struct GroupedAttentionOptions {
  int64_t heads = 1;       ///< of queries, H
  int64_t groups = 1;      ///< heads of keys and values, G; divides H
  int64_t head_width = 0;  ///< D; 0: C / H
  bool bias = false;       ///< of queries, keys and values
  bool projection_bias = false;
  RotaryTables rotary = {};  ///< of the T positions; none: neither queries nor keys are turned
  int64_t window = 0;        ///< a token sees itself and window - 1 before it; 0: all before it
  double dropout = 0;        ///< on the attention probabilities
  Initializer projection_initializer = Initializer::normal(0.02);  ///< of the output projection
  /// bool [B or 1,H or 1,T or 1,S], true = may attend, beside causality and window; S: T, or the cache's capacity.
  Tensor mask = {};
  CacheOptions cache = {};     ///< with a position: as self_attention() has it, [B,G,capacity,D]
  KeyValues before = {};       ///< [B,G,P,D], which every token sees
  LinearAddition beside = {};  ///< of "query", "key", "value" and "projection"
};

/// Causal attention in which H / G query heads share the keys and values of one: x [B,T,C] -> [B,T,C].
/// Ainslie et al. 2023, arXiv:2305.13245. Query head h reads the keys of group floor(h G / H).
///
/// Parameters `<name>.query.weight` [H D,C], `.key.weight` and `.value.weight` [G D,C], `.projection.weight` [C,H D],
/// and their biases: three matrices, for checkpoints of the Llama family have them so, and matrices that are mapped
/// from such files cannot be joined.
/// Errors: UsageError for x of another rank, H not a multiple of G, a width that heads do not divide, a window that is
/// negative, more tokens than a cache has places.
Tensor grouped_attention(Trace& trace, const std::string& name, Tensor x,
                         const GroupedAttentionOptions& options, SourceLoc loc = SourceLoc::here());

struct GatedMlpOptions {
  int64_t hidden = 0;  ///< F
  bool bias = false;
  Initializer down_initializer = Initializer::normal(0.02);
};
/// down(silu(gate x) up x), x [..., C] -> [..., C]; Shazeer 2020, arXiv:2002.05202 (SwiGLU). Parameters
/// `<name>.{gate,up}.weight` [F,C], `<name>.down.weight` [C,F].
Tensor gated_mlp(Trace& trace, const std::string& name, Tensor x, const GatedMlpOptions& options,
                 SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
