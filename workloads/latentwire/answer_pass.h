#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fullbore/nn/decoder_model.h"

namespace fullbore::latentwire {

/// The one place where rows of a language model are built: training, evaluation and generation have theirs from here.
///
///   [BOS, at the front] [prefix, M vectors] [BOS, before the anchor] [anchor] [y_0 ... y_(T-2)]
///
/// with ordinary causal attention and positions 0, 1, 2, ... Logits at place() + t predict y_t: the only shift there is.
struct RowLayout {
  enum class Begin : uint8_t { none, front, before_anchor };
  Begin begin = Begin::none;
  int32_t begin_token = -1;  ///< BOS, with a `begin`
  std::vector<int32_t> anchor = {};

  /// Of y_0's logits in a row behind a prefix of so many vectors. There is a vector or a token before it.
  int64_t place(int64_t prefix) const {
    return prefix + (begin == Begin::none ? 0 : 1) + static_cast<int64_t>(anchor.size()) - 1;
  }
};

/// What stands before an answer in a row behind a prefix [B,M,d], which may be empty: [B,place() + 1,d].
Tensor row_before_answer(Trace& trace, const nn::DecoderConfig& decoder, const RowLayout& layout,
                         Tensor prefix, int64_t batch);

/// What the model makes of all places of a row: states behind the last norm, which its head reads, and those of chosen
/// layers, [B,L,d] each, and the place of y_0's logits.
/// `prefix` may be empty, where all that a wire says is among the additions.
struct RowStates {
  nn::DecoderStates states;
  int64_t place = 0;
};
RowStates row_states(Trace& trace, const nn::DecoderConfig& decoder, const RowLayout& layout,
                     Tensor prefix, Tensor answer, std::span<const int64_t> layers = {},
                     const nn::DecoderAdditions& additions = {});

/// The same at the places whose logits predict y_0 ... y_(T-1): [B,T,d] each.
nn::DecoderStates prefix_states(Trace& trace, const nn::DecoderConfig& decoder,
                                const RowLayout& layout, Tensor prefix, Tensor answer,
                                std::span<const int64_t> layers = {},
                                const nn::DecoderAdditions& additions = {});

/// The same behind a prompt of tokens, padded on the right: tokens i32 [B,S] hold the prompt, as many as `lengths` i32 [B]
/// says, and directly behind it y_0 ... y_(T-2); what follows is not seen. `early`: how many of the T places are wanted.
nn::DecoderStates prompt_states(Trace& trace, const nn::DecoderConfig& decoder, Tensor tokens,
                                Tensor lengths, int64_t early, std::span<const int64_t> layers = {},
                                const nn::DecoderAdditions& additions = {});

}  // namespace fullbore::latentwire
