#pragma once
#include <vector>

#include "fullbore/autodiff/joint_body.h"

namespace fullbore {

/// A joint body whose forward part is there twice where decisions are taken: once as it is, and once more with
/// each decision read from the first. What the backward part reads is the second.
///
/// A decision is an integer or truth value that an op makes of floating values which differ from iteration to iteration:
/// a comparison, a cast, the indices of a sort. What follows from decisions by whole numbers follows exactly, and is
/// computed again. A nested loop stacks the decisions of its iterations, and its second version slices them.
struct RecordedBody {
  JointBody joint;
  std::vector<bool>
      kept;  ///< per node: taken once, in the forward loop; what else is read of it is to be stacked
};

RecordedBody record_decisions(const JointBody& joint, const Graph& body, int carried);

}  // namespace fullbore
