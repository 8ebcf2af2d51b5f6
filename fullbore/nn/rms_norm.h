#pragma once
#include "fullbore/trace/trace.h"

namespace fullbore::nn {

/// x / sqrt(mean(x^2) + epsilon) times `<name>.weight` [C] over the last axis.
Tensor rms_norm(Trace& trace, const std::string& name, Tensor x, double epsilon = 1e-6,
                Initializer initializer = Initializer::ones(), SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
