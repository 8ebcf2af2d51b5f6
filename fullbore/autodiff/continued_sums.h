#pragma once
#include <vector>

#include "fullbore/autodiff/joint_body.h"

namespace fullbore {

/// A captured operand's cotangent that a nested loop sums up from zero, so that the sum may as well go on from what
/// other iterations of the outer loop have added up: the order of additions is then that of one loop over all.
struct ContinuedSum {
  int loop = -1;       ///< index of its node, or none
  size_t operand = 0;  ///< the operand that the sum begins with
  Value result;        ///< what it has become
};

/// -> per input of the body
std::vector<ContinuedSum> continued_sums(const JointBody& joint);

}  // namespace fullbore
