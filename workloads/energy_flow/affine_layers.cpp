#include "workloads/energy_flow/affine_layers.h"

#include <cmath>
#include <utility>

#include "fullbore/ir/fp32_scope.h"

namespace fullbore::energy_flow {
namespace {

Tensor as(Tensor weight, DType dtype) {
  return weight.dtype() == dtype ? weight : cast(weight, dtype);
}

}  // namespace

Tensor apply_linear(Tensor x, const LinearWeights& weights) {
  return linear(x, as(weights.weight, x.dtype()), as(weights.bias, x.dtype()));
}

Tensor apply_norm(Tensor x, const NormWeights& weights) {
  const Fp32Scope island(x.builder());
  return layer_norm(x, as(weights.scale, x.dtype()), as(weights.shift, x.dtype()));
}

Tensor WeightDeclarer::tensor(const std::string& name, Shape shape, Initializer initializer) const {
  if (trained_) return trace_.parameter(name, std::move(shape), std::move(initializer));
  const std::string scope = trace_.builder().scope();
  return trace_.state(scope.empty() ? name : scope + "." + name, Role::frozen,
                      {DType::f32, std::move(shape)}, std::move(initializer));
}

LinearWeights WeightDeclarer::linear(const std::string& name, int64_t outputs, int64_t inputs,
                                     double deviation, const Initializer& bias) const {
  const Scope scope(trace_, name);
  return {tensor("weight", {outputs, inputs}, Initializer::normal(deviation)),
          tensor("bias", {outputs}, bias)};
}

LinearWeights WeightDeclarer::he_linear(const std::string& name, int64_t outputs,
                                        int64_t inputs) const {
  return linear(name, outputs, inputs, std::sqrt(2.0 / static_cast<double>(outputs)));
}

LinearWeights WeightDeclarer::glorot_linear(const std::string& name, int64_t outputs,
                                            int64_t inputs, const Initializer& bias) const {
  const double deviation = std::sqrt(2.0 / static_cast<double>(inputs + outputs));
  return linear(name, outputs, inputs, deviation, bias);
}

NormWeights WeightDeclarer::norm(const std::string& name, int64_t channels) const {
  const Scope scope(trace_, name);
  return {tensor("weight", {channels}, Initializer::ones()),
          tensor("bias", {channels}, Initializer::zeros())};
}

}  // namespace fullbore::energy_flow
