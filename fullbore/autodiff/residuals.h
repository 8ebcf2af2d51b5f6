#pragma once
#include <vector>

#include "fullbore/autodiff/joint_body.h"
#include "fullbore/ir/loop.h"

namespace fullbore {

/// How the backward part of a joint body gets what it reads of the forward part.
struct Residuals {
  std::vector<bool> emitted;   ///< per node: belongs to the backward loop's body
  std::vector<bool> passed;    ///< per input of the body: sliced or captured, handed over again
  std::vector<Value> stacked;  ///< values of the forward part to be kept iteration by iteration
};

Residuals choose_residuals(const JointBody& joint, const Graph& body, const LoopShape& shape);
/// Of a loop whose iterations are segments: all is computed again from the carried values that the iteration begins
/// with, except for what the nodes make that are `kept`.
Residuals choose_segment_residuals(const JointBody& joint, const Graph& body,
                                   const LoopShape& shape, const std::vector<bool>& kept);

}  // namespace fullbore
