#include "fullbore/optim/adamw.h"

#include <fmt/format.h>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"

namespace fullbore {
namespace {

// sqrt(sum over all tensors of the sum of squares), f32.
Tensor global_norm(std::span<const Tensor> gradients) {
  Tensor total;
  for (Tensor gradient : gradients) {
    std::vector<int64_t> axes;
    for (int axis = 0; axis < gradient.rank(); ++axis) axes.push_back(axis);
    const Tensor squares = reduce_sum(gradient * gradient, axes);
    total = total.valid() ? total + squares : squares;
  }
  return sqrt(total);
}

}  // namespace

OptimizerResult adamw(Trace& trace, Tensor loss, const AdamWOptions& options) {
  const Scope scope(trace, "adamw");
  std::vector<Tensor> parameters;
  for (const Trace::Parameter& parameter : trace.parameters())
    parameters.push_back(parameter.tensor);
  if (parameters.empty())
    throw UsageError(
        fmt::format("adamw: the trace '{}' has no parameters", trace.builder().graph().name()));
  std::vector<Tensor> gradients = gradient(loss, parameters);

  const Tensor step = trace.state("step", Role::control, {DType::i64, {}}, Initializer::zeros());
  const Tensor rate = scheduled_learning_rate(step, options.schedule);
  const Tensor count = cast(step, DType::f64) + 1.0;
  GraphBuilder& builder = trace.builder();
  const auto f64_scalar = [&](double value) { return full(builder, {DType::f64, {}}, value); };
  const Tensor correction1 = 1.0 - pow(f64_scalar(options.beta1), count);
  const Tensor correction2 = 1.0 - pow(f64_scalar(options.beta2), count);
  const Tensor step_size = cast(rate / correction1, DType::f32);
  const Tensor second_scale = cast(1.0 / correction2, DType::f32);
  const Tensor keep = cast(1.0 - rate * options.weight_decay, DType::f32);

  const Tensor norm = global_norm(gradients);
  Tensor factor;
  if (options.clip_norm > 0) factor = minimum(options.clip_norm / (norm + 1e-6), 1.0);

  for (size_t i = 0; i < parameters.size(); ++i) {
    const Trace::Parameter parameter = trace.parameters()[i];
    const TensorType type = parameter.tensor.type();
    const Tensor first =
        trace.state(parameter.name + ".moment1", Role::moment, type, Initializer::zeros());
    const Tensor second =
        trace.state(parameter.name + ".moment2", Role::moment, type, Initializer::zeros());
    const Tensor g = factor.valid() ? gradients[i] * factor : gradients[i];
    const Tensor new_first = first * options.beta1 + g * (1 - options.beta1);
    const Tensor new_second = second * options.beta2 + g * g * (1 - options.beta2);
    const bool decays = options.weight_decay > 0 && type.shape.rank() >= 2;
    const Tensor kept = decays ? parameter.tensor * keep : parameter.tensor;
    const Tensor denominator = sqrt(new_second * second_scale) + options.epsilon;
    trace.update(parameter.tensor, kept - step_size * new_first / denominator);
    trace.update(first, new_first);
    trace.update(second, new_second);
  }
  trace.update(step, step + 1.0);
  return {cast(rate, DType::f32), norm};
}

}  // namespace fullbore
