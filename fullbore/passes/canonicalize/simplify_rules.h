#pragma once
#include <optional>
#include <span>
#include <vector>

#include "fullbore/ir/number_everywhere.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {

/// A call that is about to be emitted with one result, on operands that are simple already.
struct SimplifyCall {
  const OpDef* op = nullptr;
  std::vector<Tensor> inputs;
  Attributes attributes;
  TensorType type;  ///< of the result
};

/// What replaces a call: a value that exists, or a simpler call. Neither if no rule applies.
struct Simpler {
  Tensor value = {};
  std::optional<SimplifyCall> call = {};
  explicit operator bool() const { return value.valid() || call; }
};

Simpler simplify_elementwise(const SimplifyCall& call);
Simpler simplify_movement(const SimplifyCall& call);
/// Moves a change of precision to the side of a movement on which fewer bytes are moved: casts to low
/// precision before it, casts from it after it. Exact, for a movement does no arithmetic.
Simpler simplify_precision(const SimplifyCall& call);

/// The call emitted, or what it simplifies to.
Tensor simplified(GraphBuilder& builder, SimplifyCall call);

inline std::optional<double> number_everywhere(Tensor x) {
  return number_everywhere(x.builder().graph(), x.value());
}
/// The node that makes x if it is an application of `op`, else null.
const Node* made_by(Tensor x, const OpDef& op);
/// Operand `i` of a node of x's graph.
inline Tensor operand(Tensor x, const Node& node, size_t i = 0) {
  return {&x.builder(), node.inputs[i]};
}

}  // namespace fullbore
