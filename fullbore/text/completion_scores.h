#pragma once
#include <cstdint>

#include "fullbore/ops/linear_log_probability.h"
#include "fullbore/text/text_model.h"

namespace fullbore {

/// Rows of tokens, in each of them G completions and what they are of.
struct CompletionInputs {
  Tensor tokens;   ///< i32 [R,T], padding behind
  Tensor before;   ///< i32 [R,G,N]: the place in its row that each token of a completion follows
  Tensor targets;  ///< i32 [R,G,N]: the completions; -1 for what is no token, or does not count
};
/// What a model says of the tokens of completions, [R G,N] each; 0 where there is none. Logits are made of completions
/// alone, a block of rows at a time, and never of prompts. `classes`: tokens that there are.
TokenScores completion_scores(const LanguageModelHead& head, const CompletionInputs& inputs,
                              int64_t classes);

}  // namespace fullbore
