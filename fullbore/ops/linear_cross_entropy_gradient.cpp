#include "fullbore/ops/linear_cross_entropy.h"
#include "fullbore/ops/rules.h"

/// linear_cross_entropy and, on the same way, its cotangents for a cotangent of 1. Its own gradient is
/// that of its decomposition.
namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_linear_cross_entropy(call);
  const TensorType& hidden = call.inputs[0];
  const DType dtype = compute_dtype(hidden.dtype);
  return {{dtype, {}}, {dtype, {hidden.shape[0]}}, hidden, call.inputs[1]};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const auto made = LinearCrossEntropy(call.inputs, call.attributes).run(true);
  return {made.sum, made.losses, made.hidden, as_dtype(made.weight, call.inputs[1].dtype())};
}

const OpRegistrar linear_cross_entropy_gradient_op(OpDef{
    .name = "linear_cross_entropy_gradient",
    .summary = "linear_cross_entropy, each row's loss, and the cotangents of hidden and weight",
    .tags = Tag::composite,
    .infer = infer,
    .decompose = decompose,
    .reference = linear_cross_entropy_gradient_reference,
    .samples = linear_cross_entropy_samples,
    .error_samples = linear_cross_entropy_error_samples,
});

}  // namespace
}  // namespace fullbore
