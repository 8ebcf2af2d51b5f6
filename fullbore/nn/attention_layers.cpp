#include "fullbore/nn/attention_layers.h"

#include <fmt/format.h>

#include "fullbore/base/error.h"
#include "fullbore/nn/initializers.h"
#include "fullbore/nn/modules.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::nn {
namespace {

Tensor as(Tensor parameter, DType dtype, SourceLoc loc) {
  return parameter.dtype() == dtype ? parameter : cast(parameter, dtype, loc);
}

void check(const char* layer, const char* what, Tensor x, const AttentionLayerOptions& options,
           SourceLoc loc) {
  if (!x.valid() || x.rank() != 3)
    throw UsageError(fmt::format("{}: needs {} [B,T,C], got {}", layer, what,
                                 x.valid() ? x.type().text() : "an empty Tensor"),
                     loc);
  if (options.heads < 1 || x.dim(2) % options.heads != 0)
    throw UsageError(fmt::format("{}: width {} of {} is not a multiple of {} heads", layer,
                                 x.dim(2), what, options.heads),
                     loc);
}

/// Queries, keys and values come of one weight.
struct Projections {
  Tensor weight, bias;  ///< [3 C,C], [3 C] or none
};
Projections declare(Trace& trace, Tensor x, const AttentionLayerOptions& options, SourceLoc loc) {
  const int64_t width = x.dim(2);
  Projections made;
  made.weight = as(
      trace.parameter("in_proj_weight", {3 * width, width}, xavier_uniform(width, 3 * width), loc),
      x.dtype(), loc);
  if (options.bias)
    made.bias =
        as(trace.parameter("in_proj_bias", {3 * width}, Initializer::zeros(), loc), x.dtype(), loc);
  return made;
}

AttentionOptions options_of(Trace& trace, const AttentionLayerOptions& options) {
  AttentionOptions made{.causal = options.causal, .mask = options.mask};
  if (trace.training() && options.dropout > 0) {
    made.dropout = options.dropout;
    made.random = trace.random();
  }
  return made;
}

/// mixed [B,T,H,D] -> [B,T,C]
Tensor projected(Trace& trace, Tensor mixed, const AttentionLayerOptions& options, SourceLoc loc) {
  const int64_t width = mixed.dim(2) * mixed.dim(3);
  return linear(trace, "out_proj", reshape(mixed, {mixed.dim(0), mixed.dim(1), width}, loc), width,
                {.bias = options.bias, .weight_initializer = kaiming_uniform(width)}, loc);
}

}  // namespace

Tensor attention(Trace& trace, const std::string& name, Tensor x,
                 const AttentionLayerOptions& options, SourceLoc loc) {
  check("attention", "x", x, options, loc);
  const Scope scope(trace, name);
  const Projections projections = declare(trace, x, options, loc);
  const Tensor qkv =
      reshape(fullbore::linear(x, projections.weight, projections.bias, loc),
              {x.dim(0), x.dim(1), 3 * options.heads, x.dim(2) / options.heads}, loc);
  return projected(trace, packed_attention(qkv, options.heads, options_of(trace, options), loc),
                   options, loc);
}

Tensor cross_attention(Trace& trace, const std::string& name, Tensor x, Tensor memory,
                       const AttentionLayerOptions& options, SourceLoc loc) {
  check("cross_attention", "x", x, options, loc);
  check("cross_attention", "memory", memory, options, loc);
  const int64_t width = x.dim(2);
  if (memory.dim(0) != x.dim(0) || memory.dim(2) != width)
    throw UsageError(fmt::format("cross_attention: x {} does not go with memory {}",
                                 x.type().text(), memory.type().text()),
                     loc);
  const Scope scope(trace, name);
  const Projections projections = declare(trace, x, options, loc);
  // Rows [begin, end) of the projection, by heads: [B,T,C] -> [B,H,T,D].
  const auto heads = [&](Tensor from, int64_t which) {
    const auto rows = [&](Tensor parameter) {
      return slice(parameter, 0, which * width, (which + 1) * width, 1, loc);
    };
    const Tensor made =
        fullbore::linear(as(from, x.dtype(), loc), rows(projections.weight),
                         projections.bias.valid() ? rows(projections.bias) : Tensor(), loc);
    return transpose(
        reshape(made, {from.dim(0), from.dim(1), options.heads, width / options.heads}, loc),
        {0, 2, 1, 3}, loc);
  };
  const Tensor mixed = fullbore::attention(heads(x, 0), heads(memory, 1), heads(memory, 2),
                                           options_of(trace, options), loc);
  return projected(trace, transpose(mixed, {0, 2, 1, 3}, loc), options, loc);
}

}  // namespace fullbore::nn
