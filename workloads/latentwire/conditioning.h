#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/nn/decoder_model.h"

namespace fullbore::latentwire {

/// Ways to tell a frozen model more than vectors before its tokens can. All are off by themselves.
struct ConditioningOptions {
  /// Keys and values of each block made of the prefix, which is then not read as vectors too: prefix tuning (Li, Liang 2021,
  /// arXiv:2101.00190) whose prefix is a function of the prompt.
  bool deep_prefix = false;
  /// Blocks behind which hidden states attend to the slots, through a gate (Alayrac et al. 2022, arXiv:2204.14198).
  std::vector<int64_t> attending_blocks = {};
  int64_t attending_heads = 8;
  /// Inner width of an MLP that makes one more key and value of each block of the mean slot; 0: none.
  int64_t coprocessor = 0;
  /// Rank of the terms beside the attention's matrices of the first `adapted_blocks` (Hu et al. 2021, arXiv:2106.09685);
  /// 0: none. A teacher reads without them.
  int64_t rank = 0;
  double rank_scale = 16;  ///< terms are multiplied by rank_scale / rank
  int64_t adapted_blocks = 8;

  bool any() const {
    return deep_prefix || !attending_blocks.empty() || coprocessor > 0 || rank > 0;
  }
};

/// A quarter, half and three quarters of a model's blocks: behind 8, 16 and 24 of 32, counted from 1; none of a model with
/// fewer than 4.
std::vector<int64_t> quarter_blocks(int64_t layers);

/// What a model is given: prefix [B,M,d], calibrated, and slots [B,M,C] of the wire. Parameters are declared under the scope
/// `name`, at once, so that a FrozenScope about the model does not reach them:
///
///   deep prefix     x = norm(prefix); x = x + W x; keys = K_l x, values = V_l x of each block l, not turned by position
///   attending       y = h + tanh(a) MHA(norm(h), z, z); h = y + tanh(a) MLP(norm(y)), MLP of 4 d with GELU, a = 0.5 at first
///   coprocessor     k = 0.8 K_l GELU(W mean(z)), v = 0.8 V_l GELU(W mean(z))
///   rank            + (rank_scale / rank) B A x, A drawn, B zero at first
///
/// Keys of several join along the sequence. Errors: UsageError for a block that there is not, heads that do not divide d.
nn::DecoderAdditions condition(Trace& trace, const std::string& name,
                               const ConditioningOptions& options, const nn::DecoderConfig& decoder,
                               Tensor prefix, Tensor slots);

/// The prompt's own embeddings made of its slots, for a loss that keeps them in there: `tokens` learned queries attend to
/// slots [B,M,C] -> [B,tokens,d]. Parameters under the scope `name`.
Tensor gist_embeddings(Trace& trace, const std::string& name, Tensor slots, int64_t tokens,
                       int64_t heads, int64_t width);

/// f32 [B,N]: what a gist's position counts for: 0 behind a row's `lengths`, i32 [B], and with probability `dropped`; the
/// others of a row share 1 / B.
Tensor gist_factors(Trace& trace, Tensor lengths, int64_t tokens, double dropped);

}  // namespace fullbore::latentwire
