#include "fullbore/optim/update_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "fullbore/optim/gradient_statistics.h"

namespace fullbore {
namespace {

Tensor f32_of(Tensor f64_scalar) { return cast(f64_scalar, DType::f32); }

Tensor f64_scalar(const UpdateContext& context, double value) {
  return full(context.trace.builder(), {DType::f64, {}}, value);
}

StoredMoment open_moment(const UpdateContext& context, const ParameterUpdate& parameter, int number,
                         StoredMoment::Range range = StoredMoment::Range::both_signs) {
  StoredMoment::Place place{fmt::format("{}.moment{}", parameter.name, number), context.moments,
                            parameter.shape, parameter.value.shape()};
  if (parameter.draw) place.draw = [&parameter, number] { return parameter.draw(number); };
  return {context.trace, std::move(place), range, context.keep};
}

Tensor rate_of(const UpdateContext& context, const ParameterUpdate& parameter) {
  return parameter.learning_rate_multiplier == 1
             ? context.rate
             : context.rate * parameter.learning_rate_multiplier;
}

// p (1 - rate decay)
Tensor decayed(const ParameterUpdate& parameter, Tensor rate) {
  if (parameter.weight_decay == 0) return parameter.value;
  return parameter.value * f32_of(1.0 - rate * parameter.weight_decay);
}

}  // namespace

Tensor sgd_update(const UpdateContext& context, const ParameterUpdate& parameter) {
  const Tensor rate = rate_of(context, parameter);
  Tensor direction = parameter.gradient;
  if (parameter.weight_decay > 0) direction = direction + parameter.value * parameter.weight_decay;
  if (context.momentum > 0) {
    const StoredMoment first = open_moment(context, parameter, 1);
    const Tensor new_first = first.value() * context.momentum + direction;
    first.keep(new_first);
    direction = context.nesterov ? direction + new_first * context.momentum : new_first;
  }
  return parameter.value - f32_of(rate) * direction;
}

Tensor adamw_update(const UpdateContext& context, const ParameterUpdate& parameter) {
  const Tensor rate = rate_of(context, parameter);
  const Tensor correction1 = 1.0 - pow(f64_scalar(context, context.beta1), context.count);
  const Tensor correction2 = 1.0 - pow(f64_scalar(context, context.beta2), context.count);
  const Tensor step_size = f32_of(rate / correction1);
  const Tensor second_scale = f32_of(1.0 / correction2);
  const Tensor g = parameter.gradient;
  const StoredMoment first = open_moment(context, parameter, 1);
  const StoredMoment second = open_moment(context, parameter, 2, StoredMoment::Range::not_negative);
  const Tensor new_first = first.value() * context.beta1 + g * (1 - context.beta1);
  const Tensor new_second = second.value() * context.beta2 + g * g * (1 - context.beta2);
  first.keep(new_first);
  second.keep(new_second);
  const Tensor denominator = sqrt(new_second * second_scale) + context.epsilon;
  return decayed(parameter, rate) - step_size * new_first / denominator;
}

Tensor lion_update(const UpdateContext& context, const ParameterUpdate& parameter) {
  const Tensor rate = rate_of(context, parameter);
  const Tensor g = parameter.gradient;
  const StoredMoment first = open_moment(context, parameter, 1);
  const Tensor direction = sign(first.value() * context.beta1 + g * (1 - context.beta1));
  first.keep(first.value() * context.beta2 + g * (1 - context.beta2));
  return decayed(parameter, rate) - f32_of(rate) * direction;
}

Tensor orthogonalize(Tensor x) {
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  constexpr int kSteps = 5;
  // The Gram matrix of the shorter side; X (b G + c G^2) is the same polynomial from the right.
  const bool wide = x.dim(0) <= x.dim(1);
  const Tensor only[] = {x};
  x = x / (global_norm(only) + 1e-7);
  for (int step = 0; step < kSteps; ++step) {
    const Tensor gram = matmul(x, x, {.transpose_a = !wide, .transpose_b = wide});
    const Tensor polynomial = gram * kB + matmul(gram, gram) * kC;
    x = x * kA + (wide ? matmul(polynomial, x) : matmul(x, polynomial));
  }
  return x;
}

Tensor muon_update(const UpdateContext& context, const ParameterUpdate& parameter) {
  const Tensor rate = rate_of(context, parameter);
  const double keep = context.momentum;
  const Tensor g = parameter.gradient;
  const StoredMoment first = open_moment(context, parameter, 1);
  const Tensor new_first = first.value() * keep + g * (1 - keep);
  first.keep(new_first);
  const Tensor direction = context.nesterov ? new_first * keep + g * (1 - keep) : new_first;
  const Tensor update = orthogonalize(reshape(direction, parameter.shape));
  const auto longer = static_cast<double>(std::max(parameter.shape[0], parameter.shape[1]));
  return decayed(parameter, rate) -
         f32_of(rate * (0.2 * std::sqrt(longer))) * reshape(update, parameter.value.shape());
}

}  // namespace fullbore
