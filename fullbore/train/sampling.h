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

/// Draws a token from the distribution that the options make of softmax(logits); ties go to the
/// lower id. `seen`: by token, whether the text holds it, for the penalty; what lies beyond it is not seen. One
/// draw of `draws` is taken, or none where no choice is left. NumericalError if no probability can be made of the logits.
/// Sources: penalty Keskar et al. 2019, arXiv:1909.05858, section 4.1; top_p Holtzman et al. 2020,
/// arXiv:1904.09751, section 3.1; top_k Fan et al. 2018, arXiv:1805.04833, section 5.3.
int32_t sample_token(std::span<const float> logits, const SamplingOptions& options,
                     PhiloxStream& draws, const std::vector<bool>& seen = {});

}  // namespace fullbore
