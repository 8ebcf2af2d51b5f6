#pragma once
#include "fullbore/app/workload.h"

namespace fullbore::latentwire {

/// Adds the options of latentwire to `eval`.
EvalKind add_latent_eval(Command eval);

}  // namespace fullbore::latentwire
