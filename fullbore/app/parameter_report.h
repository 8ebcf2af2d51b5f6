#pragma once
#include <string>

#include "fullbore/optim/optimizer.h"
#include "fullbore/train/step_function.h"

namespace fullbore {

/// Every parameter of the step with its shape, the mean, deviation, least and most of its first values by `seed`, and
/// how it is updated: its rate as a multiple of the others', its weight decay.
std::string parameters_text(const TracedStep& step, const OptimizerOptions& optimizer,
                            uint64_t seed);

}  // namespace fullbore
