#pragma once
#include "fullbore/text/text_model.h"

namespace fullbore {

/// --diagnostics, --ablate and --initial-state of `eval`.
TextEval add_hybrid_eval(Command eval);

}  // namespace fullbore
