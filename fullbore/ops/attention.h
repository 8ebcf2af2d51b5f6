#pragma once
#include <span>
#include <vector>

#include "fullbore/ir/op_def.h"

namespace fullbore {

/// The extents and options of one attention node: inputs q, k, v, [mask], [seed, step, [trip]];
/// attributes causal, masked, scale, dropout (a probability), site.
struct AttentionShape {
  int64_t batch, heads, groups, queries, keys, width;
  bool causal, masked;
  double scale, dropout;

  AttentionShape(std::span<const TensorType> inputs, const Attributes& attributes);
  /// Where the source of dropout's draws begins among the inputs.
  size_t first_random() const { return masked ? 4 : 3; }
};

/// The definition in plain loops, independent of the decomposition.
void attention_reference(ReferenceCall& call);
std::vector<Sample> attention_samples();
std::vector<ErrorSample> attention_error_samples();

}  // namespace fullbore
