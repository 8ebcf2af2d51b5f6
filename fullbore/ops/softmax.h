#pragma once
#include "fullbore/ops/ops.h"

namespace fullbore {

/// The sweeps that softmax, its logarithm and losses share, along one axis that is not empty. Written
/// once, so that common subexpressions of a loss and its gradient are found to be the same.
struct Exponentials {
  Tensor shift;    ///< the largest element, or 0 where that is infinite; the axis kept as extent 1
  Tensor shifted;  ///< x - shift, at most 0: nothing overflows
  Tensor values;   ///< exp(shifted)
  Tensor sum;      ///< of the values, the axis kept; at least 1, or 0 where all are -inf
};
Exponentials exponentials(Tensor x, int axis);

/// `sum`, 1 where it is 0: rows without a finite element give zeros, not 0 / 0.
Tensor nonzero_sum(const Exponentials& e);

}  // namespace fullbore
