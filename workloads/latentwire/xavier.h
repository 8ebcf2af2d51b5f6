#pragma once
#include <cmath>
#include <cstdint>

#include "fullbore/nn/modules.h"

namespace fullbore::latentwire {

/// Weights uniform within sqrt(6 / (inputs + outputs)), biases zero. Glorot, Bengio 2010, section 4.2.1.
inline nn::LinearOptions xavier(int64_t inputs, int64_t outputs) {
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs + outputs));
  return {.weight_initializer = Initializer::uniform(-bound, bound)};
}

}  // namespace fullbore::latentwire
