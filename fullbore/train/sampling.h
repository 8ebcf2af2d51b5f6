#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/base/philox.h"

namespace fullbore {

/// How the next token is chosen, in this order.
struct SamplingOptions {
  double repetition_penalty =
      1;                   ///< of tokens seen: positive logits are divided by it, others times it
  double temperature = 1;  ///< divides the logits; 0: always the most likely token
  int64_t top_k = 0;       ///< only the k most likely tokens; 0: all
  double top_p =
      1;  ///< of these only the fewest whose probabilities sum to p at least; at least one
};

/// A token that was drawn, and how likely it was.
struct SampledToken {
  int32_t token = 0;
  float raw = 0;      ///< log softmax(logits)[token]: temperature 1, all tokens
  float sampled = 0;  ///< by the distribution that it was drawn from
};

/// Draws a token from the distribution that the options make of softmax(logits): the lowest of the tokens kept, in the
/// order of their ids, at which their probabilities have summed to more than `uniform`, in [0, 1). Where tokens are
/// equally likely the lower ids are kept. `seen`: by token, whether the text holds it, for the penalty; what lies beyond
/// it is not seen. `allowed`: likewise, whether a token may be drawn at all, which comes before everything else; empty:
/// each of them. NumericalError if no probability can be made of the logits, or nothing is allowed.
/// Sources: penalty Keskar et al. 2019, arXiv:1909.05858, section 4.1; top_p Holtzman et al. 2020,
/// arXiv:1904.09751, section 3.1; top_k Fan et al. 2018, arXiv:1805.04833, section 5.3.
SampledToken sample_token(std::span<const float> logits, const SamplingOptions& options,
                          double uniform, const std::vector<bool>& seen = {},
                          const std::vector<bool>& allowed = {});
/// The same by one draw, which is taken in any case.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws, const std::vector<bool>& seen = {});

}  // namespace fullbore
