#include "fullbore/nn/gru.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/ir/fp32_scope.h"

namespace fullbore::nn {
namespace {

Tensor as(Tensor parameter, DType dtype, SourceLoc loc) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype, loc);
}

Tensor times(Tensor operand, Tensor weight, SourceLoc loc) {
  return matmul(operand, as(weight, operand.dtype(), loc), {.transpose_b = true}, loc);
}

}  // namespace

Tensor gru_step(Tensor x, Tensor h, const GruWeights& weights, SourceLoc loc) {
  const int64_t units = h.dim(-1);
  if (weights.hidden.shape() != Shape{3 * units, units} ||
      weights.input.shape() != Shape{3 * units, x.dim(-1)})
    throw UsageError(
        fmt::format("gru: x {} and h {} do not go with weights {} and {}", x.type().text(),
                    h.type().text(), weights.input.type().text(), weights.hidden.type().text()),
        loc);
  return gru_gates(times(x, weights.input, loc), h, weights, loc);
}

Tensor gru_gates(Tensor from_input, Tensor h, const GruWeights& weights, SourceLoc loc) {
  const int64_t units = h.dim(-1);
  const Tensor from_hidden = times(h, weights.hidden, loc);
  const auto gate = [&](Tensor gates, int64_t which) {
    return slice(gates, -1, which * units, (which + 1) * units, 1, loc);
  };
  // Gate by gate, where they are read: added to all gates at once they would be a sweep of their own.
  const auto bias = [&](Tensor biases, int64_t which) {
    return gate(as(biases, from_input.dtype(), loc), which);
  };
  const auto both = [&](int64_t which) {
    return bias(weights.input_bias, which) + bias(weights.hidden_bias, which);
  };
  // What a gate sees is never rounded, whatever its operands are.
  const auto sum = [&](Tensor a, Tensor b) {
    const Fp32Scope island(a.builder());
    return a + b;
  };
  const Tensor r = sigmoid(sum(gate(from_input, 0), gate(from_hidden, 0)) + both(0), loc);
  const Tensor z = sigmoid(sum(gate(from_input, 1), gate(from_hidden, 1)) + both(1), loc);
  const Tensor remembered = gate(from_hidden, 2) + bias(weights.hidden_bias, 2);
  const Tensor n =
      tanh(sum(gate(from_input, 2), r * remembered) + bias(weights.input_bias, 2), loc);
  return (1.0 - z) * n + z * h;
}

GruWeights gru_weights(Trace& trace, const std::string& name, int64_t inputs, int64_t units,
                       SourceLoc loc) {
  const Scope scope(trace, name);
  const double bound = std::sqrt(6.0 / static_cast<double>(inputs + 3 * units));
  GruWeights weights;
  weights.input =
      trace.parameter("weight_ih", {3 * units, inputs}, Initializer::uniform(-bound, bound), loc);
  weights.hidden =
      trace.parameter("weight_hh", {3 * units, units}, Initializer::orthogonal(1), loc);
  weights.input_bias = trace.parameter("bias_ih", {3 * units}, Initializer::zeros(), loc);
  weights.hidden_bias = trace.parameter("bias_hh", {3 * units}, Initializer::zeros(), loc);
  return weights;
}

}  // namespace fullbore::nn
