#pragma once
#include <cstdint>

#include "fullbore/ops/linear_log_probability.h"
#include "fullbore/text/text_model.h"

namespace fullbore {

/// Rows of prompts with their completions, and the latter again as targets.
struct CompletionInputs {
  Tensor tokens;   ///< i32 [B,T]: prompt, completion, padding
  Tensor first;    ///< i32 [B]: the place of the completion's first token, at least 1
  Tensor targets;  ///< i32 [B,N]: the completion, -1 behind its end
};
/// What a model says of the tokens of completions, [B,N] each; 0 where there is none. Logits are made of completions alone,
/// a block of rows at a time, and never of prompts. `classes`: tokens that there are.
TokenScores completion_scores(Trace& trace, const HiddenFunction& hidden,
                              const CompletionInputs& inputs, int64_t classes);

}  // namespace fullbore
