#pragma once
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// Every form of a loop: plain, reverse, counted, until, no iterations, captured, sliced, stacked, nested.
std::vector<Sample> loop_samples();
std::vector<ErrorSample> loop_error_samples();

}  // namespace fullbore
