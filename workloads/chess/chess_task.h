#pragma once
#include "fullbore/text/text_model.h"

namespace fullbore::chess {

/// data.batching=chess: records, of which the completions are learned.
TextTask chess_task();
/// data.batching=chess_grpo: completions of the model's own, which it is rewarded for (policy_batches.h).
TextTask grpo_task();

}  // namespace fullbore::chess
