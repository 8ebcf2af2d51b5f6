#include "fullbore/nn/mamba2.h"

#include <fmt/format.h>

#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/nn/rms_norm.h"
#include "fullbore/ops/recurrent.h"

namespace fullbore::nn {
namespace {

constexpr double kNormEpsilon = 1e-5;

Tensor as(Tensor x, DType dtype, SourceLoc loc) {
  return x.dtype() == dtype ? x : cast(x, dtype, loc);
}

// f(the middle of each of `count` equal parts of [0, 1]).
template <class F>
Initializer spread(int64_t count, const F& f) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(f((static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return Initializer::given(std::move(values));
}

double inverse_softplus_of_step(double share) {
  const double step = 1e-3 * std::pow(100, share);
  return step + std::log(-std::expm1(-step));
}

double log_of_decay(double share) { return std::log(1 + 15 * share); }

void require(Tensor x, const Mamba2Options& options, SourceLoc loc) {
  if (x.rank() != 3)
    throw UsageError(fmt::format("mamba2: needs x [B,T,C], got {}", x.type().text()), loc);
  if (options.heads <= 0 || options.inner <= 0 || options.inner % options.heads != 0)
    throw UsageError(fmt::format("mamba2: inner width {} is not a multiple of {} heads",
                                 options.inner, options.heads),
                     loc);
}

}  // namespace

Mamba2Result mamba2(Trace& trace, const std::string& name, Tensor x, Mamba2Options options,
                    SourceLoc loc) {
  require(x, options, loc);
  const Scope scope(trace, name);
  const int64_t batch = x.dim(0), tokens = x.dim(1), inner = options.inner, heads = options.heads;
  const int64_t shared = options.groups * options.states;
  const Tensor projected = linear(trace, "input", x, 2 * inner + 2 * shared + heads,
                                  {.bias = false, .weight_initializer = options.projections}, loc);
  const std::vector<Tensor> parts = split(projected, 2, {inner, inner + 2 * shared, heads}, loc);

  const auto convolution_parameter = [&](const char* which, Shape shape) {
    const Scope convolution_scope(trace, "convolution");
    return as(trace.parameter(which, std::move(shape), Initializer::uniform(-0.5, 0.5), loc),
              x.dtype(), loc);
  };
  const ConvolutionResult convolved = causal_convolution(
      parts[1], convolution_parameter("weight", {inner + 2 * shared, options.convolution}),
      convolution_parameter("bias", {inner + 2 * shared}),
      {.history = options.state.history, .resets = options.resets}, loc);
  const std::vector<Tensor> xbc = split(silu(convolved.y, loc), 2, {inner, shared, shared}, loc);

  const auto per_head = [&](const char* which, Initializer initializer) {
    return trace.parameter(which, {heads}, std::move(initializer), loc);
  };
  const auto anywhere = [&](double (*value)(double)) {
    if (!options.draws_start) return spread(heads, value);
    Initializer drawn = Initializer::uniform(0, 1);
    drawn.then = value;
    return drawn;
  };
  const Tensor bias = per_head("step_bias", anywhere(inverse_softplus_of_step));
  const Tensor decay = per_head("decay", anywhere(log_of_decay));
  const Tensor skip = per_head("skip", Initializer::ones());
  const Tensor dt = softplus(as(parts[2], bias.dtype(), loc) + bias, loc);
  const Shape by_group{batch, tokens, options.groups, options.states};
  const RecurrenceResult made =
      ssd(reshape(xbc[0], {batch, tokens, heads, inner / heads}, loc), dt, -exp(decay, loc),
          reshape(xbc[1], by_group, loc), reshape(xbc[2], by_group, loc), skip,
          {.initial = options.state.memory, .resets = options.resets, .chunk = options.chunk}, loc);
  const Tensor gated = reshape(made.y, {batch, tokens, inner}, loc) * silu(parts[0], loc);
  const Tensor normal = rms_norm(trace, "norm", gated, kNormEpsilon, Initializer::ones(), loc);
  return {linear(trace, "output", normal, x.dim(2),
                 {.bias = false, .weight_initializer = options.projections}, loc),
          {convolved.history, made.state}};
}

}  // namespace fullbore::nn
