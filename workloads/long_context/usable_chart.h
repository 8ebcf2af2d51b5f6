#pragma once
#include <string>
#include <vector>

#include "workloads/long_context/accuracy.h"

namespace fullbore::long_context {

/// A model's accuracy over lengths.
struct AccuracyCurve {
  std::string name;
  std::vector<LengthAccuracy> accuracies;  ///< ascending in length, at least one
};

/// An SVG document that stands alone, without script: accuracy over the logarithm of the length, a line for each
/// model, the threshold, and where each line falls below it. Points tell their figures under the pointer.
std::string usable_length_svg(const std::vector<AccuracyCurve>& curves, double threshold);

}  // namespace fullbore::long_context
