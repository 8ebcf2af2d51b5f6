#include "workloads/hybrid/channel_softmax.h"

#include <cmath>

#include "fullbore/nn/modules.h"
#include "fullbore/ops/recurrent.h"

namespace fullbore {
namespace {

Tensor projected(Trace& trace, const char* name, Tensor x, int64_t outputs) {
  return nn::linear(trace, name, x, outputs, {.bias = false});
}

Tensor squared_relu(Tensor x) {
  const Tensor positive = relu(x);
  return positive * positive;
}

// What the recurrence is made of, [B,T,...] each.
struct Scan {
  Tensor u, dt;  ///< [B,T,I]
  Tensor b, c;   ///< [B,T,N]
  Tensor decay;  ///< [I,N], below 0
  Tensor resets;
};

Tensor time_first(Tensor x) { return swap_axes(x, 0, 1); }

// From h [B,I,N] before the first token: y [B,T,I], and h behind the last.
nn::Mamba2Result recur(const Scan& scan, Tensor memory) {
  std::vector<Tensor> sliced = {time_first(scan.u), time_first(scan.dt), time_first(scan.b),
                                time_first(scan.c)};
  if (scan.resets.valid()) sliced.push_back(time_first(scan.resets));
  const LoopResult made = loop(
      scan.u.builder(), {memory}, sliced, {.iterations = scan.u.dim(1)}, [&](const LoopBody& body) {
        Tensor h = body.carried[0];
        const Tensor u = body.slices[0], dt = body.slices[1];
        if (scan.resets.valid()) h = select(expand_dims(expand_dims(body.slices[4], 1), 2), 0.0, h);
        h = exp(expand_dims(dt, 2) * scan.decay) * h +
            expand_dims(dt * u, 2) * expand_dims(body.slices[2], 1);
        const Tensor y = reduce_sum(h * expand_dims(body.slices[3], 1), {2});
        return IterationResults{.carried = {h}, .stacked = {y}};
      });
  return {time_first(made.stacked[0]), {{}, made.carried[0]}};
}

double inverse_softplus_of_step(double share) {
  const double step = 1e-3 * std::pow(100, share);
  return step + std::log(-std::expm1(-step));
}

// softplus(W_dt low + bias): steps between 0.001 and 0.1 at first.
Tensor steps(Trace& trace, Tensor low, int64_t inner) {
  const Tensor logits = projected(trace, "step", low, inner);
  const Scope scope(trace, "step");
  Initializer start = Initializer::uniform(0, 1);
  start.then = inverse_softplus_of_step;
  return softplus(logits + trace.parameter("bias", {inner}, start));
}

// The logarithms of 1 ... N for each channel.
Initializer decays(int64_t inner, int64_t states) {
  std::vector<double> values;
  for (int64_t i = 0; i < inner * states; ++i)
    values.push_back(std::log(static_cast<double>(1 + i % states)));
  return Initializer::given(std::move(values));
}

}  // namespace

Tensor channel_softmax_branch(Trace& trace, const std::string& name, Tensor x, int64_t heads) {
  const Scope scope(trace, name);
  const int64_t width = x.dim(2);
  for (const char* unread : {"decay", "bonus"})
    trace.parameter(unread, {heads, width / heads}, Initializer::zeros());
  const Tensor z = nn::layer_norm(trace, "norm", x);
  const auto of = [&](const char* weight) { return projected(trace, weight, z, width); };
  const Tensor mixed = of("receptance") * (softmax(of("key")) * of("value"));
  const Tensor h = x + projected(trace, "output", mixed, width) * silu(of("gate"));
  const Tensor n = nn::layer_norm(trace, "hidden_norm", h);
  const Tensor hidden = squared_relu(projected(trace, "up", n, 4 * width));
  return h + sigmoid(projected(trace, "hidden_receptance", n, width)) *
                 projected(trace, "down", hidden, width);
}

nn::Mamba2Result mamba1(Trace& trace, const std::string& name, Tensor x,
                        const Mamba1Options& options) {
  const Scope scope(trace, name);
  const int64_t inner = options.inner, states = options.states, rank = (x.dim(2) + 15) / 16;
  const std::vector<Tensor> parts =
      split(projected(trace, "input", x, 2 * inner), 2, {inner, inner});
  const auto convolution_parameter = [&](const char* which, Shape shape) {
    const Scope convolution_scope(trace, "convolution");
    return trace.parameter(which, std::move(shape), Initializer::uniform(-0.5, 0.5));
  };
  const ConvolutionResult convolved =
      causal_convolution(parts[0], convolution_parameter("weight", {inner, options.convolution}),
                         convolution_parameter("bias", {inner}),
                         {.history = options.state.history, .resets = options.resets});
  const Tensor u = silu(convolved.y);
  const std::vector<Tensor> selected =
      split(projected(trace, "selection", u, rank + 2 * states), 2, {rank, states, states});
  const Tensor decay = -exp(trace.parameter("decay", {inner, states}, decays(inner, states)));
  Tensor memory = options.state.memory;
  if (!memory.valid()) memory = full(trace.builder(), {x.dtype(), {x.dim(0), inner, states}}, 0);
  const nn::Mamba2Result made =
      recur({u, steps(trace, selected[0], inner), selected[1], selected[2], decay, options.resets},
            memory);
  const Tensor skip = trace.parameter("skip", {inner}, Initializer::ones());
  const Tensor y = (made.y + skip * u) * silu(parts[1]);
  return {projected(trace, "output", y, x.dim(2)), {convolved.history, made.state.memory}};
}

}  // namespace fullbore
