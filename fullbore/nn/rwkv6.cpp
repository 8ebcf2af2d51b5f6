#include "fullbore/nn/rwkv6.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "fullbore/ops/recurrent.h"

namespace fullbore::nn {
namespace {

constexpr double kHeadNormEpsilon = 64e-5;

Tensor as(Tensor x, DType dtype, SourceLoc loc) {
  return x.dtype() == dtype ? x : cast(x, dtype, loc);
}
DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// x [B,T,C] of heads, or a UsageError.
void require_heads(const char* module, Tensor x, int64_t heads, SourceLoc loc) {
  if (x.rank() != 3)
    throw UsageError(fmt::format("{}: needs x [B,T,C], got {}", module, x.type().text()), loc);
  if (heads <= 0 || x.dim(2) % heads != 0)
    throw UsageError(
        fmt::format("{}: width {} is not a multiple of {} heads", module, x.dim(2), heads), loc);
}

Tensor projected(Trace& trace, const char* name, Tensor x, int64_t outputs,
                 const Initializer& initializer, SourceLoc loc) {
  return linear(trace, name, x, outputs, {.bias = false, .weight_initializer = initializer}, loc);
}

Tensor squared_relu(Tensor x) {
  const Tensor positive = relu(x);
  return positive * positive;
}

// Each head's values to mean 0 and variance 1; y [B,T,H,V] -> [B,T,C].
Tensor head_norm(Trace& trace, Tensor y, const Initializer& weight, SourceLoc loc) {
  const Scope scope(trace, "norm");
  const int64_t width = y.dim(2) * y.dim(3);
  const Tensor x = as(y, wide(y.dtype()), loc);
  const Tensor centred = x - reduce_mean(x, {3}, true, loc);
  const Tensor variance = reduce_mean(centred * centred, {3}, true, loc);
  const Tensor normal =
      reshape(centred * rsqrt(variance + kHeadNormEpsilon, loc), {y.dim(0), y.dim(1), width}, loc);
  const Tensor gain = trace.parameter("weight", {width}, weight, loc);
  const Tensor bias = trace.parameter("bias", {width}, Initializer::zeros(), loc);
  return as(normal * gain + bias, y.dtype(), loc);
}

// Initial values of a channel c = index / width.
template <class F>
Initializer by_channel(int64_t width, const F& f) {
  std::vector<double> values;
  for (int64_t i = 0; i < width; ++i) values.push_back(f(static_cast<double>(i)));
  return Initializer::given(std::move(values));
}

struct Mixed {
  Tensor w, k, v, r, g;
};

// x and the token before, in shares that depend on both: [B,T,C] each.
Mixed mix(Trace& trace, Tensor x, Tensor before, const TimeMixOptions& options, SourceLoc loc) {
  const Scope scope(trace, "mix");
  const TimeMixInitializers& start = options.initializers;
  const int64_t batch = x.dim(0), tokens = x.dim(1), width = x.dim(2), rank = options.mix_rank;
  const auto share = [&](const char* name, const Initializer& initializer) {
    return as(trace.parameter(name, {width}, initializer, loc), x.dtype(), loc);
  };
  const Tensor delta = before - x;
  const Tensor down =
      as(trace.parameter("down", {width, 5 * rank}, start.mix_down, loc), x.dtype(), loc);
  const Tensor up = as(trace.parameter("up", {5, rank, width}, start.mix_up, loc), x.dtype(), loc);
  const Tensor inner = reshape(x + delta * share("x", start.mix_x), {batch * tokens, width}, loc);
  const Tensor low =
      reshape(tanh(matmul(inner, down, {}, loc), loc), {batch * tokens, 5, rank}, loc);
  const Tensor more = matmul(transpose(low, {1, 0, 2}, loc), up, {}, loc);
  const auto mixed = [&](int64_t index, const char* name, const Initializer& initializer) {
    const Tensor part =
        reshape(slice(more, 0, index, index + 1, 1, loc), {batch, tokens, width}, loc);
    return x + delta * (share(name, initializer) + part);
  };
  return {mixed(0, "w", start.mix_w), mixed(1, "k", start.mix_k), mixed(2, "v", start.mix_v),
          mixed(3, "r", start.mix_r), mixed(4, "g", start.mix_g)};
}

// -exp(base + tanh(x down) up), f32.
Tensor log_decay(Trace& trace, Tensor x, const TimeMixOptions& options, SourceLoc loc) {
  const Scope scope(trace, "decay");
  const TimeMixInitializers& start = options.initializers;
  const int64_t rows = x.dim(0) * x.dim(1), width = x.dim(2), rank = options.decay_rank;
  const Tensor base = trace.parameter("base", {width}, start.decay, loc);
  const Tensor down =
      as(trace.parameter("down", {width, rank}, start.decay_down, loc), x.dtype(), loc);
  const Tensor up = as(trace.parameter("up", {rank, width}, start.decay_up, loc), x.dtype(), loc);
  const Tensor low = tanh(matmul(reshape(x, {rows, width}, loc), down, {}, loc), loc);
  const Tensor logits = matmul(low, up, {.out_dtype = wide(x.dtype())}, loc);
  return reshape(-exp(logits + base, loc), x.shape(), loc);
}

}  // namespace

Tensor shift_tokens(Tensor x, Tensor previous, Tensor resets, SourceLoc loc) {
  if (x.dim(1) == 0) return x;
  const Tensor first =
      previous.valid() ? expand_dims(previous, 1, loc) : zeros_like(slice(x, 1, 0, 1, 1, loc), loc);
  const Tensor before =
      x.dim(1) == 1 ? first
                    : concat(std::array{first, slice(x, 1, 0, x.dim(1) - 1, 1, loc)}, 1, loc);
  return resets.valid() ? select(expand_dims(resets, 2, loc), 0.0, before) : before;
}

Tensor last_token(Tensor x, Tensor previous, SourceLoc loc) {
  if (x.dim(1) > 0) return squeeze(slice(x, 1, x.dim(1) - 1, x.dim(1), 1, loc), 1, loc);
  if (previous.valid()) return previous;
  return full(x.builder(), {x.dtype(), {x.dim(0), x.dim(2)}}, 0, loc);
}

TimeMixInitializers TimeMixInitializers::of_layer(int64_t layer, int64_t layers, int64_t width) {
  const auto all = static_cast<double>(layers), channels = static_cast<double>(width);
  const double up = layers > 1 ? static_cast<double>(layer) / (all - 1) : 0;
  const double down = 1 - static_cast<double>(layer) / all;
  const auto share = [&](double power, double more) {
    return by_channel(width, [&](double i) { return 1 - (std::pow(i / channels, power) + more); });
  };
  const double last = std::max(1.0, channels - 1);
  const Initializer normal = Initializer::normal(0.02), low = Initializer::uniform(-0.01, 0.01);
  return {
      .mix_x = share(down, 0),
      .mix_w = share(down, 0),
      .mix_k = share(down, 0),
      .mix_v = share(down, 0.3 * up),
      .mix_r = share(down / 2, 0),
      .mix_g = share(down / 2, 0),
      .mix_down = Initializer::zeros(),
      .mix_up = low,
      .decay =
          by_channel(width, [&](double i) { return -6 + 5 * std::pow(i / last, 0.7 + 1.3 * up); }),
      .decay_down = Initializer::zeros(),
      .decay_up = low,
      .bonus = by_channel(
          width, [&](double i) { return up * (1 - i / last) + 0.1 * (std::fmod(i + 1, 3) - 1); }),
      .receptance = normal,
      .key = normal,
      .value = normal,
      .gate = normal,
      .output = Initializer::normal(0.02 / std::sqrt(2 * all)),
      .norm = by_channel(
          width, [&](double) { return std::pow((1 + static_cast<double>(layer)) / all, 0.7); })};
}

TimeMixResult rwkv6_time_mix(Trace& trace, const std::string& name, Tensor x,
                             TimeMixOptions options, SourceLoc loc) {
  require_heads("rwkv6_time_mix", x, options.heads, loc);
  const Scope scope(trace, name);
  const TimeMixInitializers& start = options.initializers;
  const int64_t width = x.dim(2);
  const Shape by_head{x.dim(0), x.dim(1), options.heads, width / options.heads};
  const Mixed mixed =
      mix(trace, x, shift_tokens(x, options.state.previous, options.resets, loc), options, loc);
  const auto heads = [&](const char* weight, Tensor of, const Initializer& initializer) {
    return reshape(projected(trace, weight, of, width, initializer, loc), by_head, loc);
  };
  const Tensor r = heads("receptance", mixed.r, start.receptance);
  const Tensor k = heads("key", mixed.k, start.key);
  const Tensor v = heads("value", mixed.v, start.value);
  const Tensor gate = silu(projected(trace, "gate", mixed.g, width, start.gate, loc), loc);
  const Tensor decay = reshape(log_decay(trace, mixed.w, options, loc), by_head, loc);
  const Tensor bonus = trace.parameter("bonus", {by_head[2], by_head[3]}, start.bonus, loc);
  const RecurrenceResult made = wkv6(
      r, k, v, decay, bonus,
      {.initial = options.state.memory, .resets = options.resets, .chunk = options.chunk}, loc);
  const Tensor y = head_norm(trace, made.y, start.norm, loc) * gate;
  return {projected(trace, "output", y, width, start.output, loc),
          {last_token(x, options.state.previous, loc), made.state}};
}

ChannelMixResult rwkv6_channel_mix(Trace& trace, const std::string& name, Tensor x,
                                   ChannelMixOptions options, SourceLoc loc) {
  require_heads("rwkv6_channel_mix", x, 1, loc);
  const Scope scope(trace, name);
  const int64_t width = x.dim(2);
  const Tensor delta = shift_tokens(x, options.previous, options.resets, loc) - x;
  if (options.mix.kind == Initializer::Kind::given && options.mix.values.empty())
    options.mix = by_channel(width, [](double) { return 0.5; });
  const auto mixed = [&](const char* share) {
    const Scope mix_scope(trace, "mix");
    return x + delta * as(trace.parameter(share, {width}, options.mix, loc), x.dtype(), loc);
  };
  const Tensor hidden =
      squared_relu(projected(trace, "key", mixed("k"), options.width, options.projections, loc));
  const Tensor open =
      sigmoid(projected(trace, "receptance", mixed("r"), width, options.projections, loc), loc);
  return {open * projected(trace, "value", hidden, width, options.projections, loc),
          last_token(x, options.previous, loc)};
}

StaticMixResult rwkv6_static_mix(Trace& trace, const std::string& name, Tensor x,
                                 StaticMixOptions options, SourceLoc loc) {
  require_heads("rwkv6_static_mix", x, options.heads, loc);
  const Scope scope(trace, name);
  const int64_t width = x.dim(2), head_width = width / options.heads;
  const Shape by_head{x.dim(0), x.dim(1), options.heads, head_width};
  const Tensor z = layer_norm(trace, "norm", x, {}, loc);
  const auto heads = [&](const char* weight) {
    return reshape(projected(trace, weight, z, width, options.projections, loc), by_head, loc);
  };
  const Tensor k = heads("key"), r = heads("receptance"), v = heads("value");
  const Shape shape{options.heads, head_width};
  const Tensor base = trace.parameter(
      "decay", shape, by_channel(width, [&](double) { return options.decay; }), loc);
  const Tensor bonus = trace.parameter("bonus", shape, Initializer::zeros(), loc);
  const Tensor decay = broadcast_to(as(-exp(base, loc), wide(x.dtype()), loc), by_head, loc);
  const RecurrenceResult made =
      wkv6(r, k, v, decay, bonus,
           {.initial = options.memory, .resets = options.resets, .chunk = options.chunk}, loc);
  const Tensor mixed = reshape(sigmoid(r, loc) * made.y, x.shape(), loc);
  const Tensor h = x + projected(trace, "output", mixed, width, options.projections, loc);
  const Tensor hidden =
      squared_relu(projected(trace, "up", layer_norm(trace, "hidden_norm", h, {}, loc), 4 * width,
                             options.projections, loc));
  return {h + projected(trace, "down", hidden, width, options.projections, loc), made.state};
}

}  // namespace fullbore::nn
